import { commands } from "../../src/cli/commands.ts";
import { parseArguments } from "../../src/cli/options/arguments.ts";

/** What the command line's own parser says against a line that is shown to be typed; null where it would take it. */
export function problemOfCommand(line: string): string | null {
  for (const single of line.split(";")) {
    const [program, ...argv] = wordsOf(single.trim());
    const named = commands.filter(({ path }) => path.every((part, index) => argv[index] === part));
    const [command] = named.toSorted((one, other) => other.path.length - one.path.length);
    if (program !== "caisson" || command === undefined) return `${single}: no command`;
    // Only its name: the command is meant, and not what it takes.
    if (argv.length === command.path.length) continue;
    try {
      parseArguments(command, argv.slice(command.path.length));
    } catch (error) {
      return `${single}: ${(error as Error).message}`;
    }
  }
  return null;
}

/** As a shell takes a line apart that has double quotes at most. */
function wordsOf(line: string): string[] {
  return [...line.matchAll(/"([^"]*)"|(\S+)/g)].map(([, quoted, plain]) => quoted ?? plain ?? "");
}
