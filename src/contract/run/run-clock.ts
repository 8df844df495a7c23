import type { RunEvent } from "./run-event.ts";
import type { RunFacts } from "./run-facts.ts";

/**
 * Advances the working time. A holder measures it with its monotonic clock and writes the total into its events, so
 * that setting the clock or suspending the machine does not count. For holders that did not measure, the time between
 * their events counts.
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
  if (stopping.has(event.type) || isPause(event)) clock.counting = false;
  clock.lastAtMs = atMs;
}

const stopping: ReadonlySet<string> = new Set(["run.paused", "run.ended", "run.forked", "run.rewound"]);

/** Waiting for a provider to recover does not count as work. */
function isPause(event: RunEvent): boolean {
  return event.type === "model.failed" && (event.data.retryInMs ?? 0) > 0;
}
