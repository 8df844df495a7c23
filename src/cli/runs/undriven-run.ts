import type { ParsedArguments } from "../command.ts";
import type { CliContext } from "../context.ts";
import { line } from "../terminal/line.ts";
import { isUndriven, waitsForMessage } from "./follow-run.ts";

/** If no process drives a run, prints that and how to continue. Resolves with whether it did. */
export async function tellUndriven(context: CliContext, run: string): Promise<boolean> {
  const view = await context.station.runs.get(run);
  const [question] = view.asked;
  if (waitsForMessage(view)) {
    await context.stderr.print(line`caisson: ${run} waits for a message`);
    await context.stderr.print(line`hint: Run \`caisson send ${run} "…"\` to continue it.`);
    return true;
  }
  if (!isUndriven(view)) return false;
  await context.stderr.print(line`caisson: no process drives ${run}`);
  await context.stderr.print(
    question === undefined
      ? line`hint: Run \`caisson resume ${run}\` to continue it.`
      : line`hint: It is waiting for an answer. Run \`caisson answer ${run} allow\` (or deny) to answer and continue.`,
  );
  return true;
}

/**
 * After a message or an answer, starts a driver in the background if the run has none, unless `--no-resume` is given.
 * Resolves with whether a process drives the run.
 */
export async function continueIfUndriven(context: CliContext, run: string, args: ParsedArguments): Promise<boolean> {
  const { runs } = context.station;
  if (!isUndriven(await runs.get(run))) return true;
  if (args.flag("no-resume")) {
    await tellUndriven(context, run);
    return false;
  }
  await runs.resume(run, { by: context.variable("USER") ?? "user", detached: true });
  await context.stderr.print(line`caisson: ${run} had no process; it continues in the background`);
  await context.stderr.print(line`hint: Run \`caisson attach ${run}\` to watch it.`);
  return true;
}
