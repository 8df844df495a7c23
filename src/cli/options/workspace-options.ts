import type { OptionDefinition } from "../command.ts";

/** Options for /workspace in a new sandbox. */
export const workspaceOptions: readonly OptionDefinition[] = [
  {
    name: "workspace",
    short: "w",
    value: "DIR[:MODE]",
    summary: "Mount this folder at /workspace; MODE is overlay (default: copy-on-write), rw or ro",
  },
  { name: "no-workspace", summary: "Use an empty /workspace instead of the current folder" },
];
