import type { OptionSpec } from "../command.ts";

export const ownerOption: OptionSpec = { name: "owner", value: "OWNER", summary: "Only this owner's; `local` is the user of the machine" };
export const labelsOption: OptionSpec = { name: "label", value: "K=V", repeat: true, summary: "Only those that have this label" };
export const sinceOption: OptionSpec = { name: "since", value: "TIME", summary: "Only those made within this time, such as 2h or 7d" };
