import { CaissonError } from "../../contract/error.ts";
import type { Log } from "../../log/log.ts";
import { runStream } from "./head-of-run.ts";
import type { Runs } from "./runs.ts";

/** How often to look whether the process that was to end the run died over it. */
const DRIVER_CHECK_MS = 2_000;

/**
 * How long whoever drives the run may take to end it; then its sandbox is ended from here, and the driver has as long
 * again to notice.
 */
const STOP_GRACE_MS = 45_000;

export interface StopRunOptions {
  log: Log;
  runs: Runs;
  /** Ends the sandboxes of a run, whatever its driver does. */
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
    // Asked for once, however often this is called; whoever finds nobody driving the run ends it.
    await runs.stop(run, { by });
    const fromSeq = await log.lastSeq(stream);
    // Its end need not be the last of it: labels can be changed later.
    if ((await runs.facts(run)).status === "ended") return;
    const wait = AbortSignal.any([...(signal ? [signal] : []), AbortSignal.timeout(DRIVER_CHECK_MS)]);
    for await (const event of log.subscribe(stream, { fromSeq, signal: wait })) if (event.type === "run.ended") return;
    if (signal?.aborted !== true) continue;
    if ((await runs.facts(run)).status === "ended") return;
    throw new CaissonError("cancelled", `the run ${run} was asked to stop, and has not ended yet`, {
      hint: `\`caisson attach ${run}\` watches it.`,
    });
  }
}

async function driverStuck(run: string, log: Log): Promise<CaissonError> {
  const holder = await log.holder(runStream(run));
  return new CaissonError("timeout", `the run ${run} has not ended: what drives it does not answer (${holder?.owner ?? "unknown"})`, {
    hint: "Its sandbox was ended. End that process, then stop the run again.",
  });
}
