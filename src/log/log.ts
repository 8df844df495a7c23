import type { z } from "zod";

/** An event as it is handed in: type, version and data; the log adds sequence and time. */
export interface NewEvent {
  type: string;
  version: number;
  data: z.core.util.JSONType;
}

export interface StoredEvent extends NewEvent {
  stream: string;
  /** 1, 2, 3 … in each stream, without gaps. */
  seq: number;
  /** ISO time of the append. */
  at: string;
}

/** The right to append to a stream as its owner. A later lease has a higher epoch, and every append with a lower one is refused. */
export interface Lease {
  readonly stream: string;
  readonly owner: string;
  readonly epoch: number;
  readonly expiresAtMs: number;
}

export interface Damage {
  stream: string | null;
  fromSeq: number | null;
  text: string;
}

/**
 * The log. A fact is true once `append` has resolved: it survives kill -9 and a power cut. Several processes may share one.
 * All methods throw `unavailable` when the store cannot be reached, `no_space` on a full disk.
 */
export interface Log extends AsyncDisposable {
  /**
   * Appends all or nothing, durably. `expectedSeq` is the sequence the caller believes is last (0: an empty stream; absent: wherever the
   * end is). `lease`: refused when a newer lease was given out. Throws `conflict` (wrong sequence, `details.lastSeq` tells the right one),
   * `denied` (fenced out by a newer epoch), `too_large` past a bound.
   */
  append(stream: string, events: readonly NewEvent[], options?: { expectedSeq?: number; lease?: Lease }): Promise<{ lastSeq: number }>;
  /** In order, at most `limit` (default 10,000). */
  read(stream: string, options?: { fromSeq?: number; limit?: number }): Promise<StoredEvent[]>;
  lastSeq(stream: string): Promise<number>;
  /** Everything from `fromSeq` (default 1) on, then live, whoever appends in whichever process; no gap, no repeat. A slow consumer is served from the store, not from memory. Ends with the signal. */
  subscribe(stream: string, options?: { fromSeq?: number; signal?: AbortSignal }): AsyncIterable<StoredEvent>;
  /** Names of streams with this prefix, newest first, at most `limit` (default 1,000). */
  streams(options?: { prefix?: string; limit?: number }): Promise<{ stream: string; lastSeq: number; at: string }[]>;
  /**
   * Takes the lease when nobody holds it, it has expired, or `ownerGone` says its owner can never come back; null when another holds it. Each
   * time it is taken the epoch rises.
   */
  acquire(stream: string, options: { owner: string; ttlMs: number; ownerGone?: (owner: string) => boolean }): Promise<Lease | null>;
  holder(stream: string): Promise<Lease | null>;
  /** Throws `denied` when it was taken over. */
  renew(lease: Lease, options: { ttlMs: number }): Promise<Lease>;
  release(lease: Lease): Promise<void>;
  /** Removes a stream and everything in it. */
  remove(stream: string): Promise<void>;
  /** Reads everything once and says what is damaged; the rest stays readable. */
  check(): Promise<Damage[]>;
}
