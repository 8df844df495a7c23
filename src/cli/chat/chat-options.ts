import type { OptionDefinition } from "../command.ts";
import { runOptions } from "../runs/define-run-commands.ts";

/** Options of `run` that make no sense in a conversation at a terminal. */
export const optionsOfRunAlone: ReadonlySet<string> = new Set([
  "detach",
  "json",
  "task-file",
  "record",
  "replay",
  "on-ask",
  "on-budget",
  "cleanup",
]);

const summaries: Readonly<Record<string, string>> = {
  continue: "Continue a run where it stopped (default: this folder's newest)",
};

export const chatOptions: readonly OptionDefinition[] = runOptions
  .filter(({ name }) => !optionsOfRunAlone.has(name))
  .map((option) => ({ ...option, summary: summaries[option.name] ?? option.summary }));
