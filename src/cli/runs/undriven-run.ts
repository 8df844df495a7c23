import type { ParsedArguments } from "../command.ts";
import type { CliContext } from "../context.ts";
import { line } from "../terminal/line.ts";
import { isUndriven } from "./follow-run.ts";

/** Says of a run that nobody drives it, and how to go on. Resolves with whether that is so. */
export async function tellUndriven(context: CliContext, run: string): Promise<boolean> {
  const view = await context.station.runs.get(run);
  if (!isUndriven(view)) return false;
  const [question] = view.asked;
  await context.stderr.print(line`caisson: nobody drives ${run}: its process is gone`);
  await context.stderr.print(
    question === undefined
      ? line`hint: \`caisson resume ${run}\` continues it.`
      : line`hint: It waits for an answer; \`caisson answer ${run} allow\` (or deny) gives it and goes on.`,
  );
  return true;
}

/**
 * After something was said to a run: one without a process gets one again, in the background, unless `--no-resume`.
 * Resolves with whether somebody drives it.
 */
export async function goOnIfUndriven(context: CliContext, run: string, given: ParsedArguments): Promise<boolean> {
  const { runs } = context.station;
  if (!isUndriven(await runs.get(run))) return true;
  if (given.flag("no-resume")) {
    await tellUndriven(context, run);
    return false;
  }
  await runs.resume(run, { by: context.variable("USER") ?? "user", detached: true });
  await context.stderr.print(line`caisson: ${run} had no process; it continues in the background`);
  await context.stderr.print(line`hint: \`caisson attach ${run}\` watches it.`);
  return true;
}
