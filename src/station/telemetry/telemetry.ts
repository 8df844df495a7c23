import { randomBytes } from "node:crypto";
import type { NewRunEvent } from "../../contract/run/run-event.ts";
import { formatTraceparent, parseTraceparent, traceIdOf } from "../../lib/trace-ids.ts";
import type { Log, StoredEvent } from "../../log/log.ts";
import type { Appended } from "../../log/observed-log.ts";
import { readPages } from "../../log/read-pages.ts";
import type { EndedSpan } from "./open-spans.ts";
import { concernsSpans, createRunSpans, type RunSpans } from "./run-spans.ts";
import type { SpanSink } from "./span-sink.ts";

const RUN_PREFIX = "run/";
/** How many runs we keep open spans for, and how many events of one run may wait while we read the earlier ones. */
const RUNS_MAX = 1000;
const WAITING_MAX = 10_000;
/** How many ancestors of a sub-run we follow to find its trace. */
const DEPTH_MAX = 20;

export interface Telemetry extends AsyncDisposable {
  /** Receives events of the runs that this process drives. */
  appended(appended: Appended, log: Pick<Log, "read">): void;
  /** Starts the span of a request to the station. */
  begin(request: { method: string; traceparent: string | null }): { traceparent: string; end(answered: Answered): void };
}

interface Answered {
  route: string;
  method: string;
  status: number;
}

interface Followed {
  /** Null while we read the events before the first one that we received. */
  spans: RunSpans | null;
  waiting: { event: NewRunEvent; atMs: number }[];
}

/** Creates spans of this process's work. Tracing never disturbs the work: on a failure we drop the spans. */
export function createTelemetry({ sink }: { sink: SpanSink }): Telemetry {
  const runs = new Map<string, Followed>();
  /** Reads of earlier events in progress. */
  const reading = new Set<Promise<unknown>>();
  const take = (run: string, followedRun: Followed, { event, atMs }: Followed["waiting"][number]) => {
    for (const span of followedRun.spans?.take(event, atMs) ?? []) sink.export(span);
    if (event.type === "run.ended") runs.delete(run);
  };
  const follow = (run: string, seq: number, log: Pick<Log, "read">): Followed => {
    if (runs.size >= RUNS_MAX) runs.delete(runs.keys().next().value as string);
    const followedRun: Followed = { spans: null, waiting: [] };
    runs.set(run, followedRun);
    const read = spansUntil(run, { seq, log })
      .then(
        (spans) => {
          followedRun.spans = spans;
          for (const each of followedRun.waiting.splice(0)) take(run, followedRun, each);
        },
        () => runs.delete(run),
      )
      .finally(() => reading.delete(read));
    reading.add(read);
    return followedRun;
  };
  return {
    appended({ stream, events, firstSeq }, log) {
      if (!stream.startsWith(RUN_PREFIX)) return;
      const run = stream.slice(RUN_PREFIX.length);
      const atMs = Date.now();
      for (const event of events as readonly NewRunEvent[]) {
        if (!concernsSpans(event)) continue;
        const followedRun = runs.get(run) ?? follow(run, firstSeq, log);
        if (followedRun.spans !== null) take(run, followedRun, { event, atMs });
        else if (followedRun.waiting.length < WAITING_MAX) followedRun.waiting.push({ event, atMs });
      }
    },
    begin: ({ method, traceparent }) => requestSpan(sink, { method, traceparent }),
    async [Symbol.asyncDispose]() {
      await Promise.all(reading);
      await sink[Symbol.asyncDispose]();
    },
  };
}

/** Returns the run's spans as of this event. An earlier driver has already reported the spans that ended before. */
async function spansUntil(run: string, { seq, log }: { seq: number; log: Pick<Log, "read"> }): Promise<RunSpans> {
  const { read } = log;
  const [created] = await read(`${RUN_PREFIX}${run}`, { limit: 1 });
  const parentTraceId = await traceAbove(created, read);
  const spans = createRunSpans(run, parentTraceId === null ? {} : { parentTraceId });
  for await (const page of readPages(log, `${RUN_PREFIX}${run}`)) {
    for (const event of page) {
      if (event.seq >= seq) return spans;
      if (event.damage === undefined) spans.take(event as unknown as NewRunEvent, Date.parse(event.at));
    }
  }
  return spans;
}

/** Returns the trace of the topmost run for a sub-run; null for a run without a parent. */
async function traceAbove(created: StoredEvent | undefined, read: Log["read"]): Promise<string | null> {
  let event = created;
  for (let depth = 0; depth < DEPTH_MAX; depth++) {
    const { parent, traceparent } = (event?.data ?? {}) as { parent?: { run: string } | null; traceparent?: string };
    if (parent === null || parent === undefined) return depth === 0 ? null : (parseTraceparent(traceparent)?.traceId ?? null);
    [event] = await read(`${RUN_PREFIX}${parent.run}`, { limit: 1 });
    if (event === undefined || (event.data as { parent?: unknown }).parent === null) {
      return parseTraceparent((event?.data as { traceparent?: string } | undefined)?.traceparent)?.traceId ?? traceIdOf(parent.run);
    }
  }
  return null;
}

function requestSpan(sink: SpanSink, { method, traceparent }: { method: string; traceparent: string | null }) {
  const above = parseTraceparent(traceparent);
  const traceId = above?.traceId ?? randomBytes(16).toString("hex");
  const spanId = randomBytes(8).toString("hex");
  const startMs = Date.now();
  const sampled = above?.sampled ?? true;
  return {
    traceparent: formatTraceparent({ traceId, spanId, sampled }),
    end({ route, status }: Answered) {
      if (!sampled) return;
      const attributes = { "http.request.method": method, "http.route": route, "http.response.status_code": status };
      const error = status >= 500 ? String(status) : null;
      const parentSpanId = above?.spanId ?? null;
      const span: EndedSpan = {
        traceId,
        spanId,
        parentSpanId,
        name: `${method} ${route}`,
        kind: "server",
        startMs,
        endMs: Date.now(),
        error,
        attributes,
      };
      sink.export(span);
    },
  };
}
