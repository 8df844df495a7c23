import { problemOf } from "../contract/api/problem.ts";
import { CaissonError } from "../contract/error/error.ts";
import { fromSystem } from "../contract/error/system-error.ts";
import type { SentEvent } from "./call.ts";
import { type Conditions, etagOf, names } from "./conditions.ts";
import { jsonPieces } from "./json-pieces.ts";
import { type SentStream, withContent } from "./send-answer.ts";

/** The interval at which an idle event stream sends a ping. */
const PING_MS = 15_000;
/** The default for `retry-after`. */
const RETRY_AFTER_SECONDS = 5;
const encoder = new TextEncoder();

export async function jsonAnswer(value: unknown, status: number): Promise<Response> {
  const headers = { "content-type": "application/json", ...noStore };
  return withContent(new Response(null, { status, headers }), await jsonPieces(value));
}

/** Answers with JSON and an ETag, or with 304 if the caller has this version. */
export async function versionedAnswer(value: unknown, { ifNoneMatch }: Conditions): Promise<Response> {
  const pieces = await jsonPieces(value);
  const etag = await etagOf(pieces);
  if (ifNoneMatch !== null && names(ifNoneMatch, etag, { weakly: true })) return unchangedAnswer(etag);
  return withContent(new Response(null, { headers: { "content-type": "application/json", ...noSniff, ...ownCache, etag } }), pieces);
}

export function unchangedAnswer(etag: string): Response {
  return new Response(null, { status: 304, headers: { ...ownCache, etag } });
}

const noSniff = { "x-content-type-options": "nosniff" };
const noStore = { "cache-control": "no-store", ...noSniff };
/** Callers must revalidate what they cached. */
const ownCache = { "cache-control": "private, no-cache" };

/**
 * An error that is not a `CaissonError` is a defect: `onDefect` receives it, and the caller learns only that the
 * station failed.
 */
export function problemAnswer(error: unknown, { request, onDefect }: { request: Request; onDefect: (error: unknown) => void }): Response {
  // The rest of the body is not read, so the connection cannot be reused.
  const hasBody = request.headers.has("transfer-encoding") || (request.headers.get("content-length") ?? "0") !== "0";
  const failure = asCaissonError(error, onDefect);
  const problem = problemOf(failure);
  const retryAfter =
    failure.details?.retryAfterSeconds ?? (problem.status === 429 || problem.status === 503 ? RETRY_AFTER_SECONDS : undefined);
  const headers = {
    "content-type": "application/problem+json",
    ...noStore,
    ...(hasBody && { connection: "close" }),
    ...(failure.code === "unauthenticated" && { "www-authenticate": 'Bearer realm="caisson"' }),
    ...(typeof retryAfter === "number" && { "retry-after": String(retryAfter) }),
    ...(failure.code === "out_of_range" && { "content-range": `bytes */${String(failure.details?.sizeBytes)}` }),
  };
  return withContent(new Response(null, { status: problem.status, headers }), [JSON.stringify(problem)]);
}

export function asCaissonError(error: unknown, onDefect: (error: unknown) => void): CaissonError {
  if (error instanceof CaissonError) return error;
  const ofMachine = fromSystem(error);
  if (ofMachine !== null) return ofMachine;
  onDefect(error);
  return new CaissonError("internal", "the station failed to handle this request", {
    hint: "This is a defect in Caisson; the station's own output has the details.",
  });
}

type StreamLife = Pick<SentStream, "abort" | "release">;

interface SentBytes {
  type: string;
  /** The number of bytes sent, if known. */
  sizeBytes?: number;
  etag?: string;
  /** Where the sent part begins, and the length of the whole. */
  part?: { offset: number; wholeBytes: number };
  isHead?: boolean;
  parts?: boolean;
}

/** Sends a byte stream, read only as fast as the caller accepts it. */
export async function bytesAnswer(bytes: AsyncIterable<Uint8Array>, options: StreamLife & SentBytes): Promise<Response> {
  const { type, sizeBytes, etag, part, isHead = false, parts = false } = options;
  const headers = {
    "content-type": type,
    ...(etag === undefined ? noStore : { ...noSniff, ...ownCache, etag }),
    ...(parts && { "accept-ranges": "bytes" }),
    ...(sizeBytes !== undefined && { "content-length": String(sizeBytes) }),
    ...(part !== undefined &&
      sizeBytes !== undefined && { "content-range": `bytes ${part.offset}-${part.offset + sizeBytes - 1}/${part.wholeBytes}` }),
  };
  const status = part === undefined ? 200 : 206;
  if (isHead) {
    await options.release();
    return new Response(null, { status, headers });
  }
  const chunks = sizeBytes === undefined ? bytes : exactly(bytes, sizeBytes);
  return withContent(new Response(null, { status, headers }), { chunks, abort: options.abort, release: options.release });
}

/**
 * Fails if the content is shorter than announced. That breaks the connection, so no client mistakes it for the whole.
 */
async function* exactly(bytes: AsyncIterable<Uint8Array>, sizeBytes: number): AsyncGenerator<Uint8Array> {
  let left = sizeBytes;
  for await (const chunk of bytes) {
    yield chunk.subarray(0, left);
    left -= Math.min(left, chunk.length);
    if (left === 0) return;
  }
  if (left > 0) throw new CaissonError("stale", "the content became shorter while it was read");
}

/**
 * Sends server-sent events. The last one is `end`, or `problem` with the error. A client can resume a stream that
 * breaks off without either.
 */
export function eventsAnswer(
  events: AsyncIterable<SentEvent<unknown>>,
  options: StreamLife & { signal: AbortSignal; onDefect: (error: unknown) => void },
): Response {
  const { signal, onDefect, abort, release } = options;
  const headers = { "content-type": "text/event-stream", ...noStore, "x-accel-buffering": "no" };
  return withContent(new Response(null, { headers }), { chunks: encodeEvents(events, { signal, onDefect }), abort, release });
}

async function* encodeEvents(
  events: AsyncIterable<SentEvent<unknown>>,
  { signal, onDefect }: { signal: AbortSignal; onDefect: (error: unknown) => void },
): AsyncGenerator<Uint8Array> {
  // Shows the caller at once that the stream is open.
  yield encoder.encode(": open\n\n");
  try {
    for await (const event of withPings(events)) {
      if (event === "ping") yield encoder.encode(": ping\n\n");
      else yield encoder.encode(frameOf(event));
    }
    // An interrupted stream sends no `end`: its reader may come back for the rest.
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
