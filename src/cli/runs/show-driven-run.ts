import type { FinishReason } from "../../contract/run.ts";
import { defined } from "../../lib/defined.ts";
import type { CliContext } from "../context.ts";
import { line } from "../terminal/line.ts";
import { createAsking } from "./ask-in-terminal.ts";
import { followRun } from "./follow-run.ts";
import { printOutcome } from "./run-outcome.ts";

const SHOW_GRACE_MS = 1_000;

/** Exit codes of `run` by how it ended; 125 is the platform's failure. */
export const exitCodes: Record<FinishReason, number> = {
  done: 0,
  error: 1,
  stuck: 1,
  max_steps: 1,
  budget: 1,
  timeout: 124,
  cancelled: 130,
};

/** Shows a run that this process drives until `letGo`; Ctrl-C holds it and asks, a second one stops it. */
export async function showDrivenRun(
  context: CliContext,
  id: string,
  options: { json: boolean; letGo: AbortController; fromSeq?: number },
): Promise<number> {
  const { runs, sessions } = context.station;
  const shown = new AbortController();
  const asking = createAsking(context, id, options.json);
  const following = followRun(context, runs, id, {
    json: options.json,
    live: true,
    signal: shown.signal,
    onEvent: asking.onEvent,
    ...defined({ fromSeq: options.fromSeq }),
  });
  void watchInterruption(context, id, { letGo: options.letGo, isInteractive: asking.isInteractive });
  try {
    const ended = await runs.wait(id);
    // The run is over; only the reader of our output can still keep us, and whoever signals now is not willing to wait
    // for that one. Others may have seen its end before we do. A signal that came before was for the run.
    const hurried = context.interruption.since(Date.parse(ended.updatedAt));
    const outcome = { run: ended, signal: abortedBy(hurried) };
    const telling = following.then(async () => (options.json ? undefined : await printOutcome(context, sessions, outcome)));
    await Promise.race([telling, hurried]);
    return exitCodes[ended.finish ?? "error"];
  } finally {
    asking.close();
    shown.abort();
    await withinGrace(following.catch(() => undefined));
  }
}

function abortedBy(event: Promise<unknown>): AbortSignal {
  const controller = new AbortController();
  void event.then(() => controller.abort());
  return controller.signal;
}

/** What is still to be shown may be stuck in a pipe that nobody reads. */
async function withinGrace(showing: Promise<unknown>): Promise<void> {
  const over = Promise.withResolvers<void>();
  const timer = setTimeout(over.resolve, SHOW_GRACE_MS);
  await Promise.race([showing, over.promise]);
  clearTimeout(timer);
}

async function watchInterruption(
  context: CliContext,
  id: string,
  { letGo, isInteractive }: { letGo: AbortController; isInteractive: boolean },
): Promise<void> {
  const { runs } = context.station;
  const first = await context.interruption.first;
  // Told to end by somebody who cannot be asked: the run stays as it is, and `caisson resume` goes on with it.
  if (first !== "SIGINT") {
    letGo.abort();
    return;
  }
  await runs.pause(id, { text: "interrupted" }).catch(() => undefined);
  // On a terminal it is said once the run shows as held.
  if (!isInteractive)
    await context.stderr.print(line`caisson: the run is held; Ctrl-C again stops it, \`caisson resume ${id}\` goes on with it`);
  await context.interruption.second;
  await runs.stop(id, { by: "Ctrl-C" }).catch(() => letGo.abort());
}
