import { CaissonError } from "../../contract/error/error.ts";
import type { ParsedArguments } from "../command.ts";
import type { CliContext } from "../context.ts";
import { parseStep } from "../sessions/step-of-run.ts";
import { restoredFileLines } from "../sessions/undo.ts";
import { line } from "../terminal/line.ts";
import { runNamed } from "./run-named.ts";

/** `caisson rewind [RUN] --to STEP`, and `/rewind` in a chat */
export async function rewindRun(context: CliContext, args: ParsedArguments): Promise<number> {
  const to = args.option("to");
  if (to === undefined)
    throw new CaissonError("invalid", "--to is missing: the step to go back to", { hint: "`caisson logs RUN` shows the steps." });
  const name = await runNamed(context, args.positionals[0]);
  const step = parseStep("--to", to);
  const { run, tail, files } = await context.station.runs.rewind(name, { to: step, by: context.variable("USER") ?? "user" });
  if (args.flag("json")) {
    await context.stdout.printJson({ run: run.run, steps: run.steps, tail, files });
    return 0;
  }
  await context.stdout.print([
    line`${run.run} is again as it was ${step === 0 ? "before its first step" : `after step ${step}`}. ${tail} has what came after.`,
    ...(files.length === 0 ? [] : [line`Files restored:`, ...restoredFileLines(files)]),
  ]);
  await context.stderr.print(line`hint: Run \`caisson send ${run.run} "…"\` to continue it.`);
  return 0;
}
