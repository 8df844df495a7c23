import type { OptionSpec } from "../command.ts";
import { runOptions } from "../runs/run-command-specs.ts";

/** Options of `run` that make no sense where somebody sits and types. */
export const optionsOfRunAlone: ReadonlySet<string> = new Set(["detach", "json", "task-file", "record", "replay", "on-ask", "on-budget"]);

const summaries: Readonly<Record<string, string>> = {
  continue: "Go on with a run, where it was left (default: this folder's newest)",
};

export const chatOptions: readonly OptionSpec[] = runOptions
  .filter(({ name }) => !optionsOfRunAlone.has(name))
  .map((option) => ({ ...option, summary: summaries[option.name] ?? option.summary }));
