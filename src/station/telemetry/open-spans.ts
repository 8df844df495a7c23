import { spanIdOf } from "../../lib/trace-ids.ts";

/** A span that has ended, as plain data. Ids are in hexadecimal, times in milliseconds since 1970. */
export interface EndedSpan {
  traceId: string;
  spanId: string;
  parentSpanId: string | null;
  name: string;
  kind: "internal" | "client" | "server";
  startMs: number;
  endMs: number;
  /** What went wrong, in a word; null when nothing did. */
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

/** Calls that are open at once in one run; more would be a mistake of ours. */
const OPEN_MAX = 1000;

/** The spans of one run that have begun, by a key that is theirs within the run: `run`, `step 3`, `tool t3.1`. */
export interface OpenSpans {
  readonly rootId: string;
  /** Of all spans from here on. */
  trace(trace: { traceId: string; sampled: boolean }): void;
  /** One of the same key that had not ended is lost. */
  begin(key: string, span: Omit<OpenSpan, "spanId">): EndedSpan[];
  end(key: string, outcome: { atMs: number; error: string | null; more?: Attributes }): EndedSpan[];
  endAll(isMeant: (key: string) => boolean, outcome: { atMs: number; error: string | null }): EndedSpan[];
  /** What calls are below: the step, or the run itself. */
  current(): string;
  /** Of one that has begun. */
  idOf(key: string): string | null;
  /** Where the run works from here on. */
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
  /** The first of its key has the id that others compute for it, too. */
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
