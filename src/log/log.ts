import type { z } from "zod";
import type { HeadCursor, HeadFilter } from "./head-filter.ts";

/** An event as it is handed in: type, version and data; the log adds sequence and time. */
export interface NewEvent {
  type: string;
  version: number;
  /** What JSON can say; what is undefined in an object is left out. */
  data: z.core.util.JSONType | object;
}

export interface StoredEvent extends NewEvent {
  data: z.core.util.JSONType;
  stream: string;
  /** 1, 2, 3 … in each stream, without gaps; of one that was retold, only the last of them are there. */
  seq: number;
  /** ISO time of the append. */
  at: string;
  /**
   * What is wrong with this row, when it cannot be read; its data is null then. What came before it is as it was
   * written.
   */
  damage?: string;
}

/** An event with its place among those of all streams. */
export interface PlacedEvent extends StoredEvent {
  /** Grows with every event of the log, whatever its stream. Positions of removed streams are missing. */
  position: number;
}

/**
 * The right to append to a stream as its owner. A later lease has a higher epoch, and every append with a lower one is
 * refused.
 */
export interface Lease {
  readonly stream: string;
  readonly owner: string;
  readonly epoch: number;
  /** By the wall clock, for people. What decides is the clock of the boot in which it was taken. */
  readonly expiresAtMs: number;
}

/** What a stream has come to: its projection, kept with every append, so that nobody has to fold the stream to know. */
export interface StreamHead {
  stream: string;
  /** The last event that is in it: what to expect when appending because of it. */
  seq: number;
  at: string;
  head: z.core.util.JSONType;
  /** What was found wrong with the stream by whoever read it last. */
  damage: string | null;
}

export interface AppendOptions {
  expectedSeq?: number;
  lease?: Lease;
  /**
   * The events tell all that was in the stream before them, which is removed in the same moment: so a stream that goes
   * on for ever stays short. Numbers go on. Whoever has the old events, and folds these on top, has to come to the
   * same.
   */
  isRetold?: boolean;
  /** Gives up waiting for a log that others hold; `unavailable` then, as at the end of its patience. */
  signal?: AbortSignal;
}

export interface FollowAll {
  prefix?: string | readonly string[];
  /** Types of events; default all. */
  types?: readonly string[];
  afterPosition?: number;
  /** How long to let events gather before they are read, for those who need not know at once; default not at all. */
  restMs?: number;
  signal?: AbortSignal;
}

export interface Damage {
  stream: string | null;
  fromSeq: number | null;
  text: string;
}

/**
 * The log. A fact is true once `append` has resolved: it survives kill -9 and a power cut. Several processes may share
 * one. All methods throw `unavailable` when the store cannot be reached, or is held by others for longer than the log
 * waits, and `no_space` on a full disk; `details.log` is true then. Nothing was appended.
 */
export interface Log extends AsyncDisposable {
  /**
   * Appends all or nothing, durably. `expectedSeq` is the sequence the caller believes is last (0: an empty stream;
   * absent: wherever the end is). `lease`: refused when a newer lease was given out. Throws `conflict` (wrong sequence,
   * `details.lastSeq` tells the right one), `superseded` (fenced out by a newer epoch), `too_large` past a bound.
   */
  append(stream: string, events: readonly NewEvent[], options?: AppendOptions): Promise<{ lastSeq: number }>;
  /**
   * In order, at most `limit` (default 10,000), and no more once they have `bytesMax` together. A row that cannot be
   * read is given with its `damage`. Throws `internal` when not even the first one can be found.
   */
  read(stream: string, options?: { fromSeq?: number; limit?: number; bytesMax?: number }): Promise<StoredEvent[]>;
  lastSeq(stream: string): Promise<number>;
  /**
   * Everything from `fromSeq` (default 1) on, then live, whoever appends in whichever process; no gap, no repeat. A
   * slow consumer is served from the store, not from memory. Ends with the signal. Whoever appends to the stream as
   * well says by `known` up to where it has the events already, and is spared reading its own.
   */
  subscribe(stream: string, options?: { fromSeq?: number; signal?: AbortSignal; known?: () => number }): AsyncIterable<StoredEvent>;
  /**
   * The same over all streams with this prefix, or one of these (default: all there are), in the order in which their
   * events became true, from after a position (default 0) on. A consumer that stalls costs nobody else anything; one
   * that comes back with the position of the last event it had goes on without gap or repeat. Of an append that cannot
   * be read one event is given, with its `damage`. With `types`, events of other types are passed over unread: most of
   * a log is what was streamed, and most who follow it want none of that.
   */
  subscribeAll(options?: FollowAll): AsyncIterable<PlacedEvent>;
  /** Of the last event of all; 0 for an empty log. Whoever wants only what comes subscribes after it. */
  lastPosition(): Promise<number>;
  /** Names of streams with this prefix, newest first, at most `limit` (default 1,000). */
  streams(options?: { prefix?: string; limit?: number }): Promise<{ stream: string; lastSeq: number; at: string }[]>;
  /** The head of one stream. Null for a stream that is not there, or of a kind that has no projection. */
  head(stream: string): Promise<StreamHead | null>;
  /**
   * Heads that pass the filter, newest first, at most `limit`, from after the cursor on; nothing is folded. `total`
   * counts all that pass, as far as somebody counts (`isMinimum`). A stream that is appended to meanwhile moves to the
   * front: who has to know of every one subscribes.
   */
  heads(options: HeadFilter & { after?: HeadCursor; limit: number }): Promise<{ heads: StreamHead[]; total: number; isMinimum: boolean }>;
  /** Remembers with the head that the stream cannot be read, for those who look at heads only. Null: it can. */
  noteDamage(stream: string, damage: string | null): Promise<void>;
  /**
   * Takes the lease when nobody holds it, it has expired, or `ownerGone` says its owner can never come back; null when
   * another holds it. Each time it is taken the epoch rises.
   */
  acquire(stream: string, options: { owner: string; ttlMs: number; ownerGone?: (owner: string) => boolean }): Promise<Lease | null>;
  /** Who holds the lease now. */
  holder(stream: string): Promise<Lease | null>;
  /** The lease that was given out last and not given back, run out or not. */
  lastLease(stream: string): Promise<Lease | null>;
  /** Throws `superseded` when it was taken over. */
  renew(lease: Lease, options: { ttlMs: number }): Promise<Lease>;
  release(lease: Lease): Promise<void>;
  /** Removes a stream and everything in it. */
  remove(stream: string): Promise<void>;
  /** Reads everything once and says what is damaged; the rest stays readable. */
  check(): Promise<Damage[]>;
}
