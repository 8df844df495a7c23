import { CaissonError } from "../../contract/error/error.ts";

/** Failures in a row after which a run waits for `resume`. */
export const FAILURES_MAX = 6;
const FIRST_RETRY_MS = 5_000;
const RETRY_MS_MAX = 10 * 60_000;
/** The wait after a model outage. By then the model client has retried for about ten minutes. */
const OUTAGE_MS = 5 * 60_000;

/**
 * Returns how long to wait before driving a run again after a failure that does not end it: its session was in use, the
 * disk was full, or its model did not answer. Null if it should not be retried automatically. `times` is the number of
 * failures in a row, including this one.
 */
export function retryAfterMs(error: unknown, times: number): number | null {
  if (error instanceof CaissonError) {
    // Another process drives it.
    if (error.code === "superseded" || error.details?.owner !== undefined) return null;
    if (error.details?.paused === true) return OUTAGE_MS;
  }
  return times >= FAILURES_MAX ? null : Math.min(RETRY_MS_MAX, FIRST_RETRY_MS * 2 ** (times - 1));
}
