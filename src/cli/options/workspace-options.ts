import type { OptionSpec } from "../command.ts";

/** What is at /workspace in a new sandbox. */
export const workspaceOptions: readonly OptionSpec[] = [
  {
    name: "workspace",
    short: "w",
    value: "DIR[:MODE]",
    summary: "The folder at /workspace; MODE is overlay (default: never changed outside), rw or ro",
  },
  { name: "no-workspace", summary: "An empty /workspace instead of the current folder" },
];
