import type { WebSocket } from "ws";
import type { z } from "zod";
import { problemOf } from "../../contract/api/problem.ts";
import { closeCodes } from "../../contract/api/stream-paths.ts";
import { CaissonError, errorCodes } from "../../contract/error/error.ts";
import { checkValue, tellProblems } from "../../contract/error/plain-problems.ts";
import { ignore, jsonOrNull } from "../../lib/failures.ts";

/** How long a client may take to send its first message. */
const FIRST_MESSAGE_MS = 10_000;
const PING_MS = 30_000;
/** How many pings a client that reads nothing may leave unanswered. */
const STALLED_PINGS_MAX = 20;
/** While more than this is buffered, the sender waits. */
const BUFFERED_BYTES_MAX = 128 * 1024;
/** Limits on text messages: in a burst, and per second. */
const MESSAGES_BURST = 5_000;
const MESSAGES_PER_SECOND = 1_000;
/** How long a client has to confirm the close. */
const CLOSE_MS = 2_000;
/** The most messages that are queued before there is a listener. */
const EARLY_MESSAGES_MAX = 64;

export interface Listeners {
  onMessage(message: unknown): void;
  /** If absent, binary frames are rejected. */
  onBytes?(data: Buffer): void;
}

/** A client's WebSocket as streams use it. An error that a listener throws ends it with that problem. */
export interface ServerSocket {
  /** Returns the client's first message. Throws `invalid`, `timeout`. */
  first<Schema extends z.ZodType>(schema: Schema): Promise<z.output<Schema>>;
  listen(listeners: Listeners): void;
  /** Resolves when the client reads fast enough for more. Does nothing on a closed socket. */
  send(message: object | string): Promise<void>;
  sendBytes(data: Uint8Array): Promise<void>;
  /** Returns how many bytes wait to be sent. */
  bufferedBytes(): number;
  pause(): void;
  resume(): void;
  /** Ends the socket: rejects `failed` with the problem for the client. */
  fail(error: unknown): void;
  /** Rejects when the socket fails. Never resolves. */
  readonly failed: Promise<never>;
  /** Aborted when the connection is closed or broken. The reason is the close code. */
  readonly disconnected: AbortSignal;
  /** Closes the socket, after sending a problem for an error. Resolves when it is closed. */
  close(end: { code: number } | { error: CaissonError }): Promise<void>;
}

export function createServerSocket(ws: WebSocket): ServerSocket {
  const disconnect = new AbortController();
  const failed = Promise.withResolvers<never>();
  void ignore(failed.promise, "awaited by readers");
  const fail = (error: unknown) => failed.reject(error);
  ws.on("close", (code) => disconnect.abort(code));
  // A `close` event follows every error.
  ws.on("error", () => {});
  const stopPings = keepAlive(ws);
  disconnect.signal.addEventListener("abort", stopPings, { once: true });
  const { listen, next } = createInbox(ws, fail);
  const goneEarly = Promise.withResolvers<never>();
  void ignore(goneEarly.promise, "awaited by senders");
  disconnect.signal.addEventListener("abort", () => goneEarly.reject(new CaissonError("cancelled", "the client has disconnected")), {
    once: true,
  });
  /** Nothing may follow the closing message. */
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
    disconnected: disconnect.signal,
    async close(end) {
      if (disconnect.signal.aborted) return;
      isClosing = true;
      // A paused socket would not see the client's close frame.
      ws.resume();
      if ("error" in end) await write(JSON.stringify({ type: "problem", problem: problemOf(end.error) }));
      const code = "error" in end ? closeCodes.problemBase + errorCodes[end.error.code].httpStatus : end.code;
      ws.close(code);
      const timer = setTimeout(() => ws.terminate(), CLOSE_MS);
      await new Promise((resolve) => disconnect.signal.addEventListener("abort", resolve, { once: true }));
      clearTimeout(timer);
    },
  };
}

/** Validates a message. Throws `invalid`. */
export function parseMessage<Schema extends z.ZodType>(schema: Schema, message: unknown): z.output<Schema> {
  const parsed = checkValue(schema, message);
  if (parsed.success) return parsed.data;
  throw new CaissonError("invalid", `the message is invalid: ${tellProblems(parsed.problems)}`);
}

/**
 * Disconnects a client that has not answered the last ping. A client that reads nothing cannot answer, so it has
 * longer. While the socket is paused, answers cannot arrive, so no ping is sent.
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
      else if (to.onBytes === undefined) throw new CaissonError("invalid", "this stream accepts no binary frames");
      else to.onBytes(data);
    } catch (error) {
      fail(error);
    }
  };
  ws.on("message", (data: Buffer, isBinary: boolean) => {
    const message = isBinary ? data : data.toString("utf8");
    if (!isBinary && !spend())
      return fail(new CaissonError("busy", `the client sent more than ${MESSAGES_PER_SECOND} messages per second`));
    if (listeners !== null) return deliver(message, listeners);
    early.push(message);
    if (early.length >= EARLY_MESSAGES_MAX) ws.pause();
    takeFirst();
  });
  const takeFirst = () => {
    const first = waiting === null ? undefined : early.shift();
    if (first === undefined) return;
    deliver(first, { onMessage: (message) => waiting?.resolve(message) });
    waiting = null;
  };
  return {
    async next(): Promise<unknown> {
      waiting = Promise.withResolvers();
      const { promise } = waiting;
      takeFirst();
      const timer = setTimeout(
        () => fail(new CaissonError("timeout", "the client did not send its first message in time")),
        FIRST_MESSAGE_MS,
      );
      return promise.finally(() => clearTimeout(timer));
    },
    listen(to: Listeners): void {
      listeners = to;
      for (const data of early.splice(0)) deliver(data, to);
      ws.resume();
    },
  };
}

function messageIn(text: string): unknown {
  const message = jsonOrNull(text);
  if (typeof message === "object" && message !== null) return message;
  throw new CaissonError("invalid", "the message is not a JSON object");
}

/** Returns a function that counts a message and returns false above the limit. */
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
