import type { Duplex } from "node:stream";

export interface PumpOptions {
  /** Bytes as they pass: from a to b, from b to a. */
  onBytes?: (sent: number, received: number) => void;
  /** Without a byte in either direction; both are destroyed past it. Absent: for ever. */
  idleMs?: number;
  signal?: AbortSignal;
  /** Bytes already read from `a`; they go to `b` first. */
  first?: Buffer;
}

export interface Pumped {
  /** From a to b. */
  sent: number;
  received: number;
  /** Why it broke off; null when both sides ended. */
  error: Error | null;
}

/**
 * Raw bytes both ways until both sides ended. The end of one is passed on as a half-close; a slow reader slows the other side down; an error, an early close, `idleMs` or `signal` destroys both.
 * Never rejects. Half-closes need streams made with `allowHalfOpen: true`.
 */
export function pump(_a: Duplex, _b: Duplex, _options: PumpOptions = {}): Promise<Pumped> {
  throw new Error("not yet");
}
