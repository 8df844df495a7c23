import { createHash } from "node:crypto";

/**
 * Trace and span ids for W3C's `traceparent`. They are derived from the run, so every process that continues it
 * computes the same ones.
 */

/** Returns the id of the span with this key within the run: `run`, `step 3`, `tool t3.1`. */
export const spanIdOf = (run: string, key: string) => hashText(`${run} ${key}`, 16);
/** Returns the trace id of a run without a parent trace. */
export const traceIdOf = (run: string) => hashText(run, 32);

function hashText(text: string, length: number): string {
  return createHash("sha256").update(text).digest("hex").slice(0, length);
}

export interface Traceparent {
  traceId: string;
  spanId: string;
  sampled: boolean;
}

/** Parses W3C's header. Returns null for anything else. */
export function parseTraceparent(text: string | null | undefined): Traceparent | null {
  const [, traceId, spanId, flags] = /^00-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})$/.exec(text ?? "") ?? [];
  if (traceId === undefined || spanId === undefined || flags === undefined) return null;
  return { traceId, spanId, sampled: (Number.parseInt(flags, 16) & 1) === 1 };
}

export function formatTraceparent({ traceId, spanId, sampled }: Traceparent): string {
  return `00-${traceId}-${spanId}-${sampled ? "01" : "00"}`;
}

/** Returns the parent for spans below this span of the run, in the run's trace; undefined without tracing. */
export function traceparentBelow({ run, traceparent }: { run: string; traceparent: string | null }, key: string): string | undefined {
  const above = parseTraceparent(traceparent);
  return above === null ? undefined : formatTraceparent({ ...above, spanId: spanIdOf(run, key) });
}
