import { CaissonError } from "../../contract/error.ts";

/** Tools that do what a command of the command line does. */
const tools: readonly (readonly [RegExp, string])[] = [
  [/`caisson sandbox ls(?: [^`]*)?`/g, "list_sandboxes"],
  [/`caisson (?:ps|runs?)(?: [^`]*)?`/g, "list_runs"],
  [/`caisson agents?(?: [^`]*)?`/g, "list_agents"],
  [/`caisson logs(?: [^`]*)?`/g, "get_run"],
];

/**
 * An error as a model can act on it: it has tools, and no shell on the person's machine. Sentences of the hint that are
 * about the command line are left out, unless they say what to ask the person for.
 */
export function forModels(error: CaissonError): CaissonError {
  const { code, message, details, hint: before } = error;
  if (before === undefined) return error;
  const named = tools.reduce((text, [command, tool]) => text.replaceAll(command, tool), before);
  const hint = named
    .split(/(?<=[.!?])\s+/)
    .filter((sentence) => !/\bcaisson [a-z]|(?:^|[\s'"`(])--[a-z]/.test(sentence) || /\bperson\b/.test(sentence))
    .join(" ");
  return new CaissonError(code, message, { cause: error, ...(hint !== "" && { hint }), ...(details !== undefined && { details }) });
}
