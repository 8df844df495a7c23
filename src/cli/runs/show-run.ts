import type { FinishReason } from "../../contract/outcome.ts";
import { defined } from "../../lib/defined.ts";
import { ignore } from "../../lib/failures.ts";
import type { CliContext } from "../context.ts";
import { line } from "../terminal/line.ts";
import { createAsking } from "./ask-in-terminal.ts";
import { followRun } from "./follow-run.ts";
import { printOutcome } from "./run-outcome.ts";

const SHOW_GRACE_MS = 1_000;

/** Exit codes of `run` by finish reason; 125 means that Caisson failed. */
export const exitCodes: Record<FinishReason, number> = {
  done: 0,
  error: 1,
  stuck: 1,
  max_steps: 1,
  budget: 1,
  timeout: 124,
  cancelled: 130,
};

/**
 * Shows a run that this process drives until `releaseController` aborts. Ctrl-C holds the run and asks; a second one
 * stops it.
 */
export async function showDrivenRun(
  context: CliContext,
  id: string,
  options: { json: boolean; releaseController: AbortController; fromSeq?: number },
): Promise<number> {
  const { runs, sessions } = context.station;
  const controller = new AbortController();
  const asking = createAsking(context, id, options.json);
  const following = followRun(context, runs, id, {
    json: options.json,
    live: true,
    signal: controller.signal,
    onEvent: asking.onEvent,
    ...defined({ fromSeq: options.fromSeq }),
  });
  void watchInterruption(context, id, { releaseController: options.releaseController, isInteractive: asking.isInteractive });
  try {
    const ended = await runs.wait(id);
    // The run has ended, so only a slow reader of our output can still delay us. A user who signals now does not want
    // to wait for that. Others may have seen the end before us. An earlier signal was for the run.
    const hurried = context.interruption.since(Date.parse(ended.updatedAt));
    const outcome = { run: ended, signal: abortedBy(hurried) };
    const telling = following.then(async () => (options.json ? undefined : await printOutcome(context, sessions, outcome)));
    await Promise.race([telling, hurried]);
    return exitCodes[ended.finish ?? "error"];
  } finally {
    asking.close();
    controller.abort();
    await withinGrace(ignore(following, "only the run's outcome counts"));
  }
}

function abortedBy(event: Promise<unknown>): AbortSignal {
  const controller = new AbortController();
  void event.then(() => controller.abort());
  return controller.signal;
}

/** Waits only briefly, because the remaining output may be stuck in a pipe without a reader. */
async function withinGrace(showing: Promise<unknown>): Promise<void> {
  const over = Promise.withResolvers<void>();
  const timer = setTimeout(over.resolve, SHOW_GRACE_MS);
  await Promise.race([showing, over.promise]);
  clearTimeout(timer);
}

async function watchInterruption(
  context: CliContext,
  id: string,
  { releaseController, isInteractive }: { releaseController: AbortController; isInteractive: boolean },
): Promise<void> {
  const { runs } = context.station;
  const first = await context.interruption.first;
  // A signal ends this process, and no one can be asked. The run stays unfinished; `caisson resume` continues it.
  if (first !== "SIGINT") {
    releaseController.abort();
    return;
  }
  await ignore(runs.pause(id, { text: "interrupted" }), "the run has ended, or a second Ctrl-C stops it");
  // On a terminal, the view shows that the run is held.
  if (!isInteractive)
    await context.stderr.print(line`caisson: the run is held; press Ctrl-C again to stop it, or continue it with \`caisson resume ${id}\``);
  await context.interruption.second;
  await runs.stop(id, { by: "Ctrl-C" }).catch(() => releaseController.abort());
}
