import { CaissonError } from "../../contract/error/error.ts";
import type { Log } from "../../log/log.ts";
import { runStream } from "../vocabulary/station-names.ts";
import type { Runs } from "./runs.ts";

/** How often to check whether the driver died before it could end the run. */
const DRIVER_CHECK_MS = 2_000;

/**
 * How long the run's driver may take to end it. After that, we end its sandbox and give the driver the same time again
 * to notice.
 */
const STOP_GRACE_MS = 45_000;

export interface StopRunOptions {
  log: Log;
  runs: Runs;
  /** Ends a run's sandboxes, even while its driver uses them. */
  endSandboxes: (run: string) => Promise<void>;
}

/** See `RunVerbs.stop`. */
export async function stopRun(run: string, { by, signal }: { by: string; signal?: AbortSignal }, options: StopRunOptions): Promise<void> {
  const { log, runs } = options;
  const stream = runStream(run);
  const beganMs = performance.now();
  let sandboxEnded = false;
  for (;;) {
    const waitedMs = performance.now() - beganMs;
    if (waitedMs > 2 * STOP_GRACE_MS) throw await driverStuck(run, log);
    if (waitedMs > STOP_GRACE_MS && !sandboxEnded) {
      sandboxEnded = true;
      await options.endSandboxes(run);
    }
    // This appends at most one request, however often we call it. If there is no driver, it ends the run.
    await runs.stop(run, { by });
    const fromSeq = await log.lastSeq(stream);
    // We check the status, because the end need not be the last event: labels can change later.
    if ((await runs.facts(run)).status === "ended") return;
    const wait = AbortSignal.any([...(signal ? [signal] : []), AbortSignal.timeout(DRIVER_CHECK_MS)]);
    for await (const event of log.subscribe(stream, { fromSeq, signal: wait })) if (event.type === "run.ended") return;
    if (signal?.aborted !== true) continue;
    if ((await runs.facts(run)).status === "ended") return;
    throw new CaissonError("cancelled", `the run ${run} was asked to stop, but has not ended yet`, {
      hint: `Watch it with \`caisson attach ${run}\`.`,
    });
  }
}

async function driverStuck(run: string, log: Log): Promise<CaissonError> {
  const holder = await log.holder(runStream(run));
  return new CaissonError("timeout", `the run ${run} has not ended: its driver does not respond (${holder?.holder ?? "unknown"})`, {
    hint: "Its sandbox was ended. End the driver process, then stop the run again.",
  });
}
