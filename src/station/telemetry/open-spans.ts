import { spanIdOf } from "../../lib/trace-ids.ts";

/** An ended span as plain data. Ids are hexadecimal, times in milliseconds since 1970. */
export interface EndedSpan {
  traceId: string;
  spanId: string;
  parentSpanId: string | null;
  name: string;
  kind: "internal" | "client" | "server";
  startMs: number;
  endMs: number;
  /** A short error name, or null. */
  error: string | null;
  attributes: Attributes;
}

export type Attributes = Record<string, string | number>;

interface OpenSpan {
  spanId: string;
  parentSpanId: string | null;
  name: string;
  kind: "internal" | "client";
  startMs: number;
  attributes: Attributes;
}

/** The most calls that may be open at once in one run. More would mean a bug in Caisson. */
const OPEN_MAX = 1000;

/** The open spans of one run, each with a key that is unique within the run: `run`, `step 3`, `tool t3.1`. */
export interface OpenSpans {
  readonly rootId: string;
  /** Sets the trace of all spans from now on. */
  trace(trace: { traceId: string; sampled: boolean }): void;
  /** Drops all spans: what follows is another run. */
  reset(): void;
  /** Opens a span. An open span with the same key ends as lost. */
  begin(key: string, span: Omit<OpenSpan, "spanId">): EndedSpan[];
  end(key: string, outcome: { atMs: number; error: string | null; more?: Attributes }): EndedSpan[];
  endAll(isMeant: (key: string) => boolean, outcome: { atMs: number; error: string | null }): EndedSpan[];
  /** Returns the parent span for calls: the current step, or else the run. */
  current(): string;
  /** Returns the id of an open span, or null. */
  idOf(key: string): string | null;
  /** Sets the attributes of the sandbox in which the run works from now on. */
  enter(place: Attributes): void;
  place(): Attributes;
}

export function createOpenSpans(run: string, firstTraceId: string): OpenSpans {
  const open = new Map<string, OpenSpan>();
  const counts = new Map<string, number>();
  let traceId = firstTraceId;
  let sampled = true;
  let place: Attributes = {};
  const rootId = spanIdOf(run, "run");
  /** The first span of a key gets an id that other processes can compute, too. */
  const nextId = (key: string) => {
    const count = counts.get(key) ?? 0;
    counts.set(key, count + 1);
    return spanIdOf(run, count === 0 ? key : `${key} ${count}`);
  };
  const end: OpenSpans["end"] = (key, { atMs, error, more = {} }) => {
    const found = open.get(key);
    if (found === undefined) return [];
    open.delete(key);
    if (!sampled) return [];
    const { attributes, ...rest } = found;
    const failed: Attributes = error === null ? {} : { "error.type": error };
    return [{ ...rest, traceId, endMs: Math.max(atMs, found.startMs), error, attributes: { ...attributes, ...more, ...failed } }];
  };
  return {
    rootId,
    trace(trace) {
      traceId = trace.traceId;
      sampled = trace.sampled;
    },
    reset() {
      open.clear();
      counts.clear();
    },
    begin(key, span) {
      const lost = end(key, { atMs: span.startMs, error: "lost" });
      if (open.size < OPEN_MAX) open.set(key, { ...span, spanId: nextId(key) });
      return lost;
    },
    end,
    endAll: (isMeant, outcome) => [...open.keys()].filter(isMeant).flatMap((key) => end(key, outcome)),
    current: () => [...open].findLast(([key]) => key.startsWith("step "))?.[1].spanId ?? rootId,
    idOf: (key) => open.get(key)?.spanId ?? null,
    enter(entered) {
      place = entered;
    },
    place: () => place,
  };
}
