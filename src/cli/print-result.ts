import type { ParsedArguments } from "./command.ts";
import type { CliContext } from "./context.ts";
import { type Line, line } from "./terminal/line.ts";

/** The result of a command: `json` for programs; for people a text on stdout, or a note on stderr. */
export interface Result {
  json: unknown;
  text?: Line | readonly Line[];
  note?: Line;
}

/** Prints a result as text, or as JSON with `--json`, and resolves with the exit code 0. */
export async function printResult({ stdout, stderr }: CliContext, args: ParsedArguments, { json, text, note }: Result): Promise<number> {
  if (args.flag("json")) await stdout.printJson(json);
  else {
    if (text !== undefined) await stdout.print(text);
    if (note !== undefined) await stderr.print(line`caisson: ${note}`);
  }
  return 0;
}

/**
 * Removes the things that the command line names, one after the other. `remove` may resolve with an id or name to
 * report instead of the word. `--json` prints one list, or an object for each if `reportsEach` is set; otherwise
 * `describe` returns what to print for each.
 */
export async function removeNamed(
  context: CliContext,
  args: ParsedArguments,
  {
    remove,
    describe,
    reportsEach = false,
  }: { remove: (word: string) => Promise<unknown>; describe?: (name: string) => Omit<Result, "json">; reportsEach?: boolean },
): Promise<number> {
  const isList = args.flag("json") && !reportsEach;
  const removed: string[] = [];
  for (const word of args.positionals) {
    const id = await remove(word);
    const name = typeof id === "string" ? id : word;
    removed.push(name);
    if (!isList) await printResult(context, args, { json: { removed: name }, ...describe?.(name) });
  }
  if (isList) await context.stdout.printJson({ removed });
  return 0;
}
