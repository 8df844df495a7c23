import type { OptionDefinition } from "../command.ts";

export const ownerOption: OptionDefinition = {
  name: "owner",
  value: "OWNER",
  summary: "Show only this owner's; `local` is the user of this machine",
};
export const labelsOption: OptionDefinition = { name: "label", value: "K=V", repeat: true, summary: "Show only those with this label" };
export const sinceOption: OptionDefinition = {
  name: "since",
  value: "TIME",
  summary: "Show only those created within this time, such as 2h or 7d",
};
