import { commands } from "../../src/cli/commands.ts";
import { parseArguments } from "../../src/cli/options/arguments.ts";

/** Returns the parser's error for a command line that is shown to users, or null if it would be accepted. */
export function problemOfCommand(line: string): string | null {
  for (const single of line.split(";")) {
    const [program, ...argv] = wordsOf(single.trim());
    const named = commands.filter(({ path }) => path.every((part, index) => argv[index] === part));
    const [command] = named.toSorted((one, other) => other.path.length - one.path.length);
    if (program !== "caisson" || command === undefined) return `${single}: no command`;
    // The line only names the command, without arguments.
    if (argv.length === command.path.length) continue;
    try {
      parseArguments(command, argv.slice(command.path.length));
    } catch (error) {
      return `${single}: ${(error as Error).message}`;
    }
  }
  return null;
}

/** Splits a line into words as a shell does, for lines that only use double quotes. */
function wordsOf(line: string): string[] {
  return [...line.matchAll(/"([^"]*)"|(\S+)/g)].map(([, quoted, plain]) => quoted ?? plain ?? "");
}
