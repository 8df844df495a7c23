import { problemOf } from "../contract/api/problem.ts";
import { CaissonError } from "../contract/error.ts";
import { fromSystem } from "../contract/system-error.ts";
import type { SentEvent } from "./call.ts";

/** How often a stream of events that has nothing to say says that it is alive. */
const PING_MS = 15_000;
const encoder = new TextEncoder();

export function jsonAnswer(value: unknown, status: number): Response {
  return new Response(JSON.stringify(value), { status, headers: { "content-type": "application/json", ...noStore } });
}

const noStore = { "cache-control": "no-store", "x-content-type-options": "nosniff" };

/** Anything that is not ours by now is a defect of ours: `onDefect` hears of it, and the caller only that it is one. */
export function problemAnswer(error: unknown, { request, onDefect }: { request: Request; onDefect: (error: unknown) => void }): Response {
  // What is left of a body is not read, so nothing more can be said on this connection.
  const hasBody = request.headers.has("transfer-encoding") || (request.headers.get("content-length") ?? "0") !== "0";
  const told = asCaissonError(error, onDefect);
  const problem = problemOf(told);
  const retryAfter = told.details?.retryAfterSeconds;
  return new Response(JSON.stringify(problem), {
    status: problem.status,
    headers: {
      "content-type": "application/problem+json",
      ...noStore,
      ...(hasBody && { connection: "close" }),
      ...(told.code === "unauthenticated" && { "www-authenticate": 'Bearer realm="caisson"' }),
      ...(typeof retryAfter === "number" && { "retry-after": String(retryAfter) }),
    },
  });
}

export function asCaissonError(error: unknown, onDefect: (error: unknown) => void): CaissonError {
  if (error instanceof CaissonError) return error;
  const ofMachine = fromSystem(error);
  if (ofMachine !== null) return ofMachine;
  onDefect(error);
  return new CaissonError("internal", "the station failed at this", {
    hint: "This is a defect in Caisson; what went wrong is in the station's own output.",
  });
}

interface StreamLife {
  /** Ends what the stream waits for. */
  abort: () => void;
  /** Called once, however the stream ends. */
  release: () => Promise<void>;
}

/** Read as fast as the caller takes it, and no faster. */
export function bytesAnswer(bytes: AsyncIterable<Uint8Array>, options: StreamLife & { type: string; sizeBytes?: number }): Response {
  const { type, sizeBytes } = options;
  return new Response(bodyOf(bytes, options), {
    headers: { "content-type": type, ...noStore, ...(sizeBytes !== undefined && { "content-length": String(sizeBytes) }) },
  });
}

/**
 * Server-sent events. The last one is `end`, or `problem` with what went wrong: a stream that breaks off without either
 * can be taken up again.
 */
export function eventsAnswer(
  events: AsyncIterable<SentEvent<unknown>>,
  options: StreamLife & { signal: AbortSignal; onDefect: (error: unknown) => void },
): Response {
  const { signal, onDefect } = options;
  return new Response(bodyOf(encodeEvents(events, { signal, onDefect }), options), {
    headers: { "content-type": "text/event-stream", ...noStore, "x-accel-buffering": "no" },
  });
}

async function* encodeEvents(
  events: AsyncIterable<SentEvent<unknown>>,
  { signal, onDefect }: { signal: AbortSignal; onDefect: (error: unknown) => void },
): AsyncGenerator<Uint8Array> {
  // The caller sees at once that the stream is there.
  yield encoder.encode(": open\n\n");
  try {
    for await (const event of withPings(events)) {
      if (event === "ping") yield encoder.encode(": ping\n\n");
      else yield encoder.encode(frameOf(event));
    }
    // One that was cut short has no end: its reader may come back for the rest.
    if (!signal.aborted) yield encoder.encode("event: end\ndata: {}\n\n");
  } catch (error) {
    if (signal.aborted) return;
    yield encoder.encode(frameOf({ type: "problem", data: problemOf(asCaissonError(error, onDefect)) }));
  }
}

function frameOf({ id, type, data }: SentEvent<unknown>): string {
  return `${id === undefined ? "" : `id: ${id}\n`}event: ${type}\ndata: ${JSON.stringify(data)}\n\n`;
}

async function* withPings<Item>(items: AsyncIterable<Item>): AsyncGenerator<Item | "ping"> {
  const iterator = items[Symbol.asyncIterator]();
  try {
    let next = iterator.next();
    for (;;) {
      const timeout = Promise.withResolvers<"ping">();
      const timer = setTimeout(() => timeout.resolve("ping"), PING_MS);
      const first = await Promise.race([next, timeout.promise]).finally(() => clearTimeout(timer));
      if (first === "ping") {
        yield first;
        continue;
      }
      if (first.done) return;
      yield first.value;
      next = iterator.next();
    }
  } finally {
    await iterator.return?.();
  }
}

function bodyOf(chunks: AsyncIterable<Uint8Array>, { abort, release }: StreamLife): ReadableStream<Uint8Array> {
  const iterator = chunks[Symbol.asyncIterator]();
  let released: Promise<void> | undefined;
  const end = () => {
    released ??= release();
    return released;
  };
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        try {
          const { done, value } = await iterator.next();
          if (!done) {
            controller.enqueue(value);
            return;
          }
          await end();
          controller.close();
        } catch (error) {
          await end();
          controller.error(error);
        }
      },
      async cancel() {
        abort();
        // What it waits for has been told; a generator that was never begun has nothing to tidy up.
        await Promise.allSettled([iterator.return?.(), end()]);
      },
    },
    { highWaterMark: 0 },
  );
}
