import type { OptionSpec } from "../command.ts";

/** What of a folder a new sandbox does not see; the same wherever one is made. */
export const hidingOptions: readonly OptionSpec[] = [
  { name: "hide", value: "PATTERN", repeat: true, summary: "Also hide these files inside, such as *.secret or config/prod.yml" },
  { name: "show", value: "PATTERN", repeat: true, summary: "Show these files, which look like credentials and would be hidden; * for all" },
];
