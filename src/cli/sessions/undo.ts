import type { ParsedArguments } from "../command.ts";
import type { CliContext } from "../context.ts";
import { runNamed } from "../runs/run-named.ts";
import { dim, line, quotedName } from "../terminal/line.ts";
import { parseStep } from "./step-of-run.ts";

const FILES_SHOWN = 20;

/** `caisson undo [RUN]`, and `/undo` in a chat */
export async function undo(context: CliContext, given: ParsedArguments): Promise<number> {
  const run = await runNamed(context, given.positionals[0]);
  const to = given.option("to");
  const { files } = await context.station.sessions.undo(run, to === undefined ? {} : { to: parseStep("--to", to) });
  if (given.flag("json")) {
    await context.stdout.printJson({ run, files });
    return 0;
  }
  if (files.length === 0) {
    await context.stdout.print(to === undefined ? line`That turn changed no files.` : line`No file has changed since.`);
    return 0;
  }
  await context.stdout.print([
    to === undefined ? line`Files are as they were before the last turn:` : line`Files are as they were after step ${to}:`,
    ...files.slice(0, FILES_SHOWN).map((path) => line`  ${quotedName(path)}`),
    ...(files.length > FILES_SHOWN ? [dim(`  and ${files.length - FILES_SHOWN} more`)] : []),
  ]);
  return 0;
}
