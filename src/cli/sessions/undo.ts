import type { ParsedArguments } from "../command.ts";
import type { CliContext } from "../context.ts";
import { runNamed } from "../runs/run-named.ts";
import { dim, type Line, line, quotedName } from "../terminal/line.ts";
import { parseStep } from "./step-of-run.ts";

const FILES_SHOWN = 20;

/** `caisson undo [RUN]`, and `/undo` in a chat */
export async function undo(context: CliContext, args: ParsedArguments): Promise<number> {
  const run = await runNamed(context, args.positionals[0]);
  const to = args.option("to");
  const { files } = await context.station.sessions.undo(run, to === undefined ? {} : { to: parseStep("--to", to) });
  if (args.flag("json")) {
    await context.stdout.printJson({ run, files });
    return 0;
  }
  if (files.length === 0) {
    await context.stdout.print(to === undefined ? line`That turn changed no files.` : line`No files have changed since.`);
    return 0;
  }
  await context.stdout.print([
    to === undefined ? line`Files restored to their state before the last turn:` : line`Files restored to their state after step ${to}:`,
    ...restoredFileLines(files),
  ]);
  return 0;
}

export function restoredFileLines(files: readonly string[]): Line[] {
  return [
    ...files.slice(0, FILES_SHOWN).map((path) => line`  ${quotedName(path)}`),
    ...(files.length > FILES_SHOWN ? [dim(`  and ${files.length - FILES_SHOWN} more`)] : []),
  ];
}
