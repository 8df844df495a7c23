import type { OptionSpec } from "../command.ts";

export const ownerOption: OptionSpec = {
  name: "owner",
  value: "OWNER",
  summary: "Show only this owner's; `local` is the user of this machine",
};
export const labelsOption: OptionSpec = { name: "label", value: "K=V", repeat: true, summary: "Show only those with this label" };
export const sinceOption: OptionSpec = {
  name: "since",
  value: "TIME",
  summary: "Show only those created within this time, such as 2h or 7d",
};
