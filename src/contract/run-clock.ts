import type { RunEvent } from "./run-event.ts";
import type { RunFacts } from "./run-facts.ts";

/**
 * Worked time. An owner counts it by its monotonic clock and writes the sum into its events: a clock that is set, or a
 * machine that sleeps, is no work. Events of owners who did not are counted by the time between them, as they were when
 * they were written.
 */
export function advanceClock(facts: RunFacts, event: RunEvent): void {
  const { clock } = facts;
  const atMs = Date.parse(event.at);
  const { workedMs } = event.data as { workedMs?: number };
  if (workedMs !== undefined) facts.workedMs = Math.max(facts.workedMs, workedMs);
  else if (clock.counting && !clock.measured && event.type !== "run.claimed") facts.workedMs += Math.max(0, atMs - clock.lastAtMs);
  if (event.type === "run.claimed") {
    clock.measured = event.data.measured === true;
    clock.counting = facts.status !== "paused";
  }
  if (event.type === "run.continued" || event.type === "model.requested") clock.counting = true;
  if (event.type === "run.paused" || event.type === "run.ended" || isPause(event)) clock.counting = false;
  clock.lastAtMs = atMs;
}

/** Waiting for a provider to come back is no work. */
function isPause(event: RunEvent): boolean {
  return event.type === "model.failed" && (event.data.retryInMs ?? 0) > 0;
}
