import type { WebSocket } from "ws";
import type { z } from "zod";
import { problemOf } from "../../contract/api/problem.ts";
import { closeCodes } from "../../contract/api/stream-paths.ts";
import { CaissonError, errorCodes } from "../../contract/error.ts";
import { checkValue, tellProblems } from "../../contract/plain-problems.ts";
import { jsonOrNull } from "../../lib/json-or-null.ts";

/** How long a client may take to say what it wants. */
const FIRST_MESSAGE_MS = 10_000;
const PING_MS = 30_000;
/** So often a client that reads nothing may leave a ping unanswered. */
const STALLED_PINGS_MAX = 20;
/** What waits to be sent beyond this makes whoever sends wait. */
const BUFFERED_BYTES_MAX = 128 * 1024;
/** Messages of text: so many at once, and so many a second. */
const MESSAGES_BURST = 5_000;
const MESSAGES_PER_SECOND = 1_000;
/** How long a client has to answer that a socket is closed. */
const CLOSE_MS = 2_000;
/** What may have come before anybody listens. */
const EARLY_MESSAGES_MAX = 64;

export interface Listeners {
  onMessage(message: unknown): void;
  /** Absent: a binary frame is malformed. */
  onBytes?(data: Buffer): void;
}

/** A client's WebSocket, as streams use it. Whatever listeners throw ends it with that problem. */
export interface ServerSocket {
  /** The client's first message. Throws `invalid`, `timeout`. */
  first<Schema extends z.ZodType>(schema: Schema): Promise<z.output<Schema>>;
  listen(listeners: Listeners): void;
  /** Resolves when the client reads fast enough for more. Of a socket that is closed nothing is heard. */
  send(message: object | string): Promise<void>;
  sendBytes(data: Uint8Array): Promise<void>;
  /** How much waits to be sent. */
  bufferedBytes(): number;
  pause(): void;
  resume(): void;
  /** Ends it: rejects `failed` with what the client shall be told. */
  fail(error: unknown): void;
  /** Never resolves. */
  readonly failed: Promise<never>;
  /** Aborted when the connection is closed or broken; the reason is its code. */
  readonly gone: AbortSignal;
  /** The last thing: a problem for an error. Resolves when it is closed. */
  close(end: { code: number } | { error: CaissonError }): Promise<void>;
}

export function createServerSocket(ws: WebSocket): ServerSocket {
  const gone = new AbortController();
  const failed = Promise.withResolvers<never>();
  failed.promise.catch(() => {});
  const fail = (error: unknown) => failed.reject(error);
  ws.on("close", (code) => gone.abort(code));
  // What it is follows as a close.
  ws.on("error", () => {});
  const stopPings = keepAlive(ws);
  gone.signal.addEventListener("abort", stopPings, { once: true });
  const { listen, next } = createInbox(ws, fail);
  const goneEarly = Promise.withResolvers<never>();
  goneEarly.promise.catch(() => {});
  gone.signal.addEventListener("abort", () => goneEarly.reject(new CaissonError("cancelled", "the client has gone")), { once: true });
  /** What was said last is the last that is said. */
  let isClosing = false;
  const write = (data: string | Uint8Array): Promise<void> => {
    if (ws.readyState !== ws.OPEN) return Promise.resolve();
    const { promise, resolve } = Promise.withResolvers<void>();
    ws.send(data, () => resolve());
    return ws.bufferedAmount > BUFFERED_BYTES_MAX ? promise : Promise.resolve();
  };
  const send = async (data: string | Uint8Array) => (isClosing ? undefined : write(data));
  return {
    first: async (schema) => parseMessage(schema, await Promise.race([next(), failed.promise, goneEarly.promise])),
    listen,
    send: (message) => send(typeof message === "string" ? message : JSON.stringify(message)),
    sendBytes: send,
    bufferedBytes: () => ws.bufferedAmount,
    pause: () => ws.pause(),
    resume: () => ws.resume(),
    fail,
    failed: failed.promise,
    gone: gone.signal,
    async close(end) {
      if (gone.signal.aborted) return;
      isClosing = true;
      // It may wait for a frame that says it is closed.
      ws.resume();
      if ("error" in end) await write(JSON.stringify({ type: "problem", problem: problemOf(end.error) }));
      const code = "error" in end ? closeCodes.problemBase + errorCodes[end.error.code].httpStatus : end.code;
      ws.close(code);
      const timer = setTimeout(() => ws.terminate(), CLOSE_MS);
      await new Promise((resolve) => gone.signal.addEventListener("abort", resolve, { once: true }));
      clearTimeout(timer);
    },
  };
}

/** Throws `invalid`. */
export function parseMessage<Schema extends z.ZodType>(schema: Schema, message: unknown): z.output<Schema> {
  const parsed = checkValue(schema, message);
  if (parsed.success) return parsed.data;
  throw new CaissonError("invalid", `the message is not valid: ${tellProblems(parsed.problems)}`);
}

/**
 * A peer that did not answer since the last time is not there any more. One that takes nothing of what is to be sent
 * cannot answer, and has longer; neither can it be heard while it is made to wait.
 */
function keepAlive(ws: WebSocket): () => void {
  let missed = 0;
  ws.on("pong", () => {
    missed = 0;
  });
  const timer = setInterval(() => {
    if (missed >= (ws.bufferedAmount > 0 ? STALLED_PINGS_MAX : 1)) return ws.terminate();
    if (ws.isPaused) return;
    missed += 1;
    ws.ping();
  }, PING_MS);
  return () => clearInterval(timer);
}

function createInbox(ws: WebSocket, fail: (error: unknown) => void) {
  const early: (Buffer | string)[] = [];
  let listeners: Listeners | null = null;
  let waiting: PromiseWithResolvers<unknown> | null = null;
  const spend = createBucket();
  const deliver = (data: Buffer | string, to: Listeners) => {
    try {
      if (typeof data === "string") to.onMessage(messageIn(data));
      else if (to.onBytes === undefined) throw new CaissonError("invalid", "this stream takes no binary frames");
      else to.onBytes(data);
    } catch (error) {
      fail(error);
    }
  };
  ws.on("message", (data: Buffer, isBinary: boolean) => {
    const given = isBinary ? data : data.toString("utf8");
    if (!isBinary && !spend()) return fail(new CaissonError("busy", `more than ${MESSAGES_PER_SECOND} messages a second came`));
    if (listeners !== null) return deliver(given, listeners);
    early.push(given);
    if (early.length >= EARLY_MESSAGES_MAX) ws.pause();
    takeFirst();
  });
  const takeFirst = () => {
    const given = waiting === null ? undefined : early.shift();
    if (given === undefined) return;
    deliver(given, { onMessage: (message) => waiting?.resolve(message) });
    waiting = null;
  };
  return {
    async next(): Promise<unknown> {
      waiting = Promise.withResolvers();
      const { promise } = waiting;
      takeFirst();
      const timer = setTimeout(() => fail(new CaissonError("timeout", "the client did not say what it wants")), FIRST_MESSAGE_MS);
      return promise.finally(() => clearTimeout(timer));
    },
    listen(given: Listeners): void {
      listeners = given;
      for (const data of early.splice(0)) deliver(data, given);
      ws.resume();
    },
  };
}

function messageIn(text: string): unknown {
  const message = jsonOrNull(text);
  if (typeof message === "object" && message !== null) return message;
  throw new CaissonError("invalid", "a message is not a JSON object");
}

/** False once more came than may. */
function createBucket(): () => boolean {
  let left = MESSAGES_BURST;
  let at = performance.now();
  return () => {
    const now = performance.now();
    left = Math.min(MESSAGES_BURST, left + ((now - at) / 1000) * MESSAGES_PER_SECOND) - 1;
    at = now;
    return left >= 0;
  };
}
