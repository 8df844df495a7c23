import { createHash } from "node:crypto";

/**
 * Ids of traces and spans, as W3C's `traceparent` has them. Computed, so that whichever process goes on with a run says
 * the same.
 */

/** The span of what has this key within the run: `run`, `step 3`, `tool t3.1`. */
export const spanIdOf = (run: string, key: string) => hashed(`${run} ${key}`, 16);
/** The trace of a run that nobody's is above. */
export const traceIdOf = (run: string) => hashed(run, 32);

function hashed(text: string, length: number): string {
  return createHash("sha256").update(text).digest("hex").slice(0, length);
}

export interface Traceparent {
  traceId: string;
  spanId: string;
  sampled: boolean;
}

/** W3C's header; null for anything else. */
export function parseTraceparent(text: string | null | undefined): Traceparent | null {
  const [, traceId, spanId, flags] = /^00-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})$/.exec(text ?? "") ?? [];
  if (traceId === undefined || spanId === undefined || flags === undefined) return null;
  return { traceId, spanId, sampled: (Number.parseInt(flags, 16) & 1) === 1 };
}

export function formatTraceparent({ traceId, spanId, sampled }: Traceparent): string {
  return `00-${traceId}-${spanId}-${sampled ? "01" : "00"}`;
}

/** What stands below this span of the run, in the trace that the run is in; undefined where nobody traces it. */
export function traceparentBelow({ run, traceparent }: { run: string; traceparent: string | null }, key: string): string | undefined {
  const above = parseTraceparent(traceparent);
  return above === null ? undefined : formatTraceparent({ ...above, spanId: spanIdOf(run, key) });
}
