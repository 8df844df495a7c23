import type { z } from "zod";
import type { HeadCursor, HeadFilter } from "./head-filter.ts";

/** An event to append: type, version and data. The log adds the sequence and time. */
export interface NewEvent {
  type: string;
  version: number;
  /** Any JSON value. Undefined members of objects are dropped. */
  data: z.core.util.JSONType | object;
}

export interface StoredEvent extends NewEvent {
  data: z.core.util.JSONType;
  stream: string;
  /** 1, 2, 3 … in each stream, without gaps. A compacted stream has only the last of them. */
  seq: number;
  /** ISO time of the append. */
  at: string;
  /** Why this row cannot be read; its data is then null. The rows before it are intact. */
  damage?: string;
}

/** An event with its position among the events of all streams. */
export interface PlacedEvent extends StoredEvent {
  /** Increases with every event of the log, across all streams. Positions of removed streams are missing. */
  position: number;
}

/**
 * The right to append to a stream as its holder. Each new lease has a higher epoch, and appends with a lower one are
 * rejected.
 */
export interface Lease {
  readonly stream: string;
  readonly holder: string;
  readonly epoch: number;
  /** Wall clock time, for people. The lease itself expires by the clock of the boot in which it was taken. */
  readonly expiresAtMs: number;
}

/**
 * The current state of a stream: its projection, updated with every append, so that readers need not fold the stream.
 */
export interface StreamHead {
  stream: string;
  /** The last event the head includes: the `expectedSeq` for an append that depends on it. */
  seq: number;
  at: string;
  head: z.core.util.JSONType;
  /** The damage that the last reader found in the stream, or null. */
  damage: string | null;
}

/** Events 1 to `seq` of another stream. */
export interface Inherits {
  stream: string;
  seq: number;
}

export interface AppendOptions {
  expectedSeq?: number;
  lease?: Lease;
  /**
   * For the first append of an empty stream: it begins with these events of another stream, and its own follow them.
   * They are referenced, not copied. Every reader of the stream sees them, except `subscribeAll`, which delivers only
   * its own. They stay after the other stream is compacted or removed, as long as a stream inherits them.
   */
  inherits?: Inherits;
  /**
   * Compacts the log: these events replace everything in the stream, atomically, so an endless stream stays short.
   * Numbering continues. Folding them on top of the old events must give the same result.
   */
  isRetold?: boolean;
  /**
   * Stops waiting for a log that other processes hold. The append then fails with `unavailable`, just as after the full
   * wait.
   */
  signal?: AbortSignal;
}

export interface FollowAll {
  prefix?: string | readonly string[];
  /** Event types; default all. */
  types?: readonly string[];
  afterPosition?: number;
  /** How long to let events gather before reading them, for subscribers that can wait; default not at all. */
  restMs?: number;
  signal?: AbortSignal;
}

export interface Damage {
  stream: string | null;
  fromSeq: number | null;
  text: string;
}

/**
 * The log. A fact is durable once `append` has resolved: it survives kill -9 and a power cut. Several processes may
 * share a log. All methods throw `unavailable` if the store cannot be reached or other processes hold it for longer
 * than the log waits, and `no_space` on a full disk, both with `details.log: true`. In both cases nothing was appended.
 */
export interface Log extends AsyncDisposable {
  /**
   * Appends all events or none, durably. `expectedSeq` is the sequence that the caller believes is last (0: an empty
   * stream; absent: append at the end). An append with a `lease` is rejected if a newer lease exists. Throws `conflict`
   * (wrong sequence; `details.lastSeq` is the right one), `superseded` (fenced out by a newer epoch), `too_large` if it
   * exceeds a bound, `not_found` if the stream to inherit from has no such event.
   */
  append(stream: string, events: readonly NewEvent[], options?: AppendOptions): Promise<{ lastSeq: number }>;
  /**
   * Returns events in order: at most `limit` (default 10,000), and no more once they exceed `bytesMax` in total. An
   * unreadable row comes with its `damage`. Throws `internal` if not even the first row can be found.
   */
  read(stream: string, options?: { fromSeq?: number; limit?: number; bytesMax?: number }): Promise<StoredEvent[]>;
  lastSeq(stream: string): Promise<number>;
  /**
   * Delivers everything from `fromSeq` (default 1) on, then live events from every process, without gaps or repeats. A
   * slow consumer is served from the store, not from memory. Ends with the signal. A consumer that also appends to the
   * stream returns from `known` the last sequence that it already has, and so does not receive its own events.
   */
  subscribe(stream: string, options?: { fromSeq?: number; signal?: AbortSignal; known?: () => number }): AsyncIterable<StoredEvent>;
  /**
   * Like `subscribe`, but for all streams with one of these prefixes (default: all streams). Delivers the events after
   * a position (default 0), in the order in which they became durable. A stalled consumer does not slow down others;
   * one that resumes from its last position continues without a gap or repeat. An unreadable append yields one event
   * with its `damage`. With `types`, events of other types are skipped unread: most of a log is streamed output, which
   * most subscribers do not want.
   */
  subscribeAll(options?: FollowAll): AsyncIterable<PlacedEvent>;
  /**
   * Returns the position of the very last event; 0 for an empty log. A consumer that wants only new events subscribes
   * after it.
   */
  lastPosition(): Promise<number>;
  /** Returns streams with this prefix, newest first, at most `limit` (default 1,000). */
  streams(options?: { prefix?: string; limit?: number }): Promise<{ stream: string; lastSeq: number; at: string }[]>;
  /** Returns the head of one stream. Null if the stream does not exist, or its kind has no projection. */
  head(stream: string): Promise<StreamHead | null>;
  /**
   * Returns heads that pass the filter, newest first, at most `limit`, after the cursor, without folding any stream.
   * `total` counts all heads that pass; if counting stopped early, `isMinimum` is true. An append between two pages
   * moves its stream to the front, so a caller that must not miss any stream subscribes instead.
   */
  heads(options: HeadFilter & { after?: HeadCursor; limit: number }): Promise<{ heads: StreamHead[]; total: number; isMinimum: boolean }>;
  /** Records in the head that the stream cannot be read, for readers that use only heads. Null clears it. */
  noteDamage(stream: string, damage: string | null): Promise<void>;
  /**
   * Takes the lease if it is free or has expired, or if `holderGone` says its holder can never come back. Returns null
   * if another process holds it. Each new lease has a higher epoch.
   */
  acquire(stream: string, options: { holder: string; ttlMs: number; holderGone?: (holder: string) => boolean }): Promise<Lease | null>;
  /** Returns the current lease, or null. */
  holder(stream: string): Promise<Lease | null>;
  /** Returns the last lease that was not released, even if it has expired. */
  lastLease(stream: string): Promise<Lease | null>;
  /** Throws `superseded` if another process took the lease. */
  renew(lease: Lease, options: { ttlMs: number }): Promise<Lease>;
  release(lease: Lease): Promise<void>;
  /**
   * Removes a stream and everything in it. Events that other streams inherit stay for these, and for no other reader.
   */
  remove(stream: string): Promise<void>;
  /** Reads everything once and returns all damage; the rest stays readable. */
  check(): Promise<Damage[]>;
}
