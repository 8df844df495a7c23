import { type Duplex, Transform } from "node:stream";
import { CaissonError } from "../../contract/error/error.ts";
import type { BodyTransform } from "./relay-options.ts";
import { resetStream, sendPromptly } from "./reset-stream.ts";

export interface PumpOptions {
  /** Counts bytes as they pass: from a to b, from b to a. */
  onBytes?: (sent: number, received: number) => void;
  /** How long no byte may pass in either direction before both are destroyed. Absent: no limit. */
  idleMs?: number;
  signal?: AbortSignal;
  /** Bytes already read from `a`, which go to `b` first. */
  first?: Buffer;
  /** Bytes already read from `b`, which go to `a` first. */
  firstBack?: Buffer;
  /** Transforms what `b` sends on its way to `a`. */
  transformBack?: BodyTransform;
}

export interface Pumped {
  /** From a to b. */
  sent: number;
  received: number;
  /** Why it broke off, or null if both sides ended. */
  error: Error | null;
}

/** How often idleness is checked within the idle time. */
const IDLE_LOOKS = 4;

/**
 * Carries raw bytes both ways until both sides have ended. The end of one side is passed on as a half-close, and a slow
 * reader slows down the other side. An error, an early close, `idleMs` or `signal` destroys both. Never rejects.
 * Half-closes need streams created with `allowHalfOpen: true`.
 */
export function pump(a: Duplex, b: Duplex, options: PumpOptions = {}): Promise<Pumped> {
  const { onBytes, idleMs, signal } = options;
  const transformBack = asTransform(options.transformBack);
  return new Promise((resolve) => {
    const totals: Pumped = { sent: 0, received: 0, error: null };
    const countSent = (bytes: number) => {
      totals.sent += bytes;
      onBytes?.(bytes, 0);
    };
    const countReceived = (bytes: number) => {
      totals.received += bytes;
      onBytes?.(0, bytes);
    };
    let open = 2;
    const breakOff = (error: Error) => {
      if (open === 2) totals.error ??= error;
      resetStream(a);
      resetStream(b);
    };
    const onAbort = () => breakOff(new CaissonError("cancelled", "the tunnel was closed"));
    const timer = idleMs === undefined ? null : watchIdle(totals, idleMs, breakOff);
    const onClose = (stream: Duplex) => {
      if (!stream.readableEnded || !stream.writableFinished)
        breakOff(stream.errored ?? new CaissonError("lost", "one side of the tunnel closed"));
      open -= 1;
      if (open > 0) return;
      if (timer !== null) clearInterval(timer);
      transformBack?.destroy();
      signal?.removeEventListener("abort", onAbort);
      resolve(totals);
    };
    for (const stream of [a, b]) {
      sendPromptly(stream);
      stream.on("error", breakOff);
      if (stream.closed) queueMicrotask(() => onClose(stream));
      else stream.once("close", () => onClose(stream));
    }
    transformBack?.on("error", breakOff);
    carry(a, b, { count: countSent, first: options.first });
    carry(b, transformBack ?? a, { count: countReceived, first: options.firstBack });
    if (transformBack !== undefined) carry(transformBack, a, {});
    signal?.addEventListener("abort", onAbort, { once: true });
    if (signal?.aborted) onAbort();
  });
}

function carry(from: Duplex, to: Duplex, options: { count?: (bytes: number) => void; first?: Buffer | undefined }): void {
  const { count, first } = options;
  const onData = (chunk: Buffer) => {
    count?.(chunk.length);
    if (!to.write(chunk)) from.pause();
  };
  from.on("data", onData);
  to.on("drain", () => from.resume());
  from.once("end", () => to.end());
  from.resume();
  if (first !== undefined && first.length > 0) onData(first);
  if (from.readableEnded) to.end();
}

function asTransform(transform: BodyTransform | undefined): Transform | undefined {
  if (typeof transform !== "function") return transform;
  return new Transform({ transform: (chunk, _encoding, done) => done(null, transform(chunk)) });
}

function watchIdle(totals: Pumped, idleMs: number, breakOff: (error: Error) => void): NodeJS.Timeout {
  let seen = -1;
  let looks = 0;
  const timer = setInterval(() => {
    const total = totals.sent + totals.received;
    looks = total === seen ? looks + 1 : 0;
    seen = total;
    if (looks >= IDLE_LOOKS) breakOff(new CaissonError("timeout", "the tunnel was idle for too long"));
  }, idleMs / IDLE_LOOKS);
  timer.unref();
  return timer;
}
