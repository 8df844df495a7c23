import type { SessionCleanup } from "../../contract/session/session.ts";
import type { OptionDefinition, ParsedArguments } from "../command.ts";
import { parseChoice } from "./option-values.ts";

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

/** Written out: help must not load the schemas. */
const cleanups = ["always", "on_success", "never"] as const satisfies readonly SessionCleanup[];

/** When a workspace goes; `end` says with the end of what. */
export const cleanupOption = (end: string): OptionDefinition => ({
  name: "cleanup",
  value: "WHEN",
  summary: `Remove the session, with unapplied changes, at the end of the ${end}: always, on_success, or never (default)`,
  choices: cleanups,
});

export function cleanupFrom(args: ParsedArguments): SessionCleanup | undefined {
  const text = args.option("cleanup");
  return text === undefined ? undefined : parseChoice(...cleanups)("cleanup", text);
}
