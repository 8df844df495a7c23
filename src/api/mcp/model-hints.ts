import { CaissonError } from "../../contract/error/error.ts";

/** The tools that correspond to commands of the command line, by the first words of the command. */
const tools: readonly (readonly [string, string])[] = [
  ["sandbox ls", "list_sandboxes"],
  ["ps", "list_runs"],
  ["run", "list_runs"],
  ["runs", "list_runs"],
  ["agent", "list_agents"],
  ["agents", "list_agents"],
  ["logs", "get_run"],
];

/**
 * Rewrites an error for a model, which has tools but no shell on the person's machine. Drops the sentences of the hint
 * that refer to the command line, unless they say what to ask the person for.
 */
export function forModels(error: CaissonError): CaissonError {
  const { code, message, details, hint: before } = error;
  if (before === undefined) return error;
  const named = before.replaceAll(/`caisson ([^`]*)`/g, (quoted, words: string) => toolFor(words) ?? quoted);
  const hint = named
    .split(/(?<=[.!?])\s+/)
    .filter((sentence) => !/\bcaisson [a-z]|(?:^|[\s'"`(])--[a-z]/.test(sentence) || /\bperson\b/.test(sentence))
    .join(" ");
  return new CaissonError(code, message, { cause: error, ...(hint !== "" && { hint }), ...(details !== undefined && { details }) });
}

function toolFor(words: string): string | undefined {
  return tools.find(([command]) => words === command || words.startsWith(`${command} `))?.[1];
}
