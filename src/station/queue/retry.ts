import { CaissonError } from "../../contract/error.ts";

/** A run that could not be driven so many times in a row waits for somebody to resume it. */
export const FAILURES_MAX = 6;
const FIRST_RETRY_MS = 5_000;
const RETRY_MS_MAX = 10 * 60_000;
/** A model that does not answer was asked for about ten minutes before. */
const OUTAGE_MS = 5 * 60_000;

/**
 * When to drive a run again that could not be driven, which is not its end: its session was in use, the disk was full,
 * its model did not answer. Null: not by itself. `times`: how often in a row, this one included.
 */
export function retryAfterMs(error: unknown, times: number): number | null {
  if (error instanceof CaissonError) {
    // Another process has it.
    if (error.code === "superseded" || error.details?.owner !== undefined) return null;
    if (error.details?.paused === true) return OUTAGE_MS;
  }
  return times >= FAILURES_MAX ? null : Math.min(RETRY_MS_MAX, FIRST_RETRY_MS * 2 ** (times - 1));
}
