import type { ParsedArguments } from "../command.ts";
import type { CliContext } from "../context.ts";
import { runNamed } from "../runs/run-named.ts";
import { dim, line, quotedName } from "../terminal/line.ts";

const FILES_SHOWN = 20;

/** `caisson undo [RUN]`, and `/undo` in a chat */
export async function undo(context: CliContext, given: ParsedArguments): Promise<number> {
  const run = await runNamed(context, given.positionals[0]);
  const { files } = await context.station.sessions.undo(run);
  if (given.flag("json")) {
    await context.stdout.printJson({ run, files });
    return 0;
  }
  if (files.length === 0) {
    await context.stdout.print(line`That turn changed no files.`);
    return 0;
  }
  await context.stdout.print([
    line`Files are as they were before the last turn:`,
    ...files.slice(0, FILES_SHOWN).map((path) => line`  ${quotedName(path)}`),
    ...(files.length > FILES_SHOWN ? [dim(`  and ${files.length - FILES_SHOWN} more`)] : []),
  ]);
  return 0;
}
