import type { DatabaseSync } from "node:sqlite";
import { setTimeout as delay } from "node:timers/promises";
import { crc32 } from "node:zlib";
import { CaissonError } from "../../contract/error.ts";
import { encodeEvents, fencedOut, wrongSequence } from "../limits.ts";
import type { AppendOptions, NewEvent } from "../log.ts";
import { sqliteFault, translateSqlite } from "./open.ts";

interface Pending {
  stream: string;
  events: readonly NewEvent[];
  texts: string[];
  options: AppendOptions;
  resolve: (value: { lastSeq: number }) => void;
  reject: (error: unknown) => void;
}

/**
 * Events that were put behind one end of a stream, which is the other now. The sum of all events tells one end from
 * every other.
 */
export interface Appended {
  after: { seq: number; sum: number };
  end: { seq: number; sum: number };
  at: string;
  events: readonly NewEvent[];
}

/**
 * How long a change waits for another process's transaction before it fails; others queue up meanwhile. A backup that
 * copies the file, or a disk that stands still under another writer, takes seconds or minutes, and whoever has
 * something to put down has nothing better to do than to wait.
 */
export const BUSY_WAIT_MS_MAX = 10 * 60_000;
/** Waiting is worth a word after this. */
const BUSY_NOTICE_MS = 3_000;
/** The pause grows: each try stops the whole process for a moment. */
const BUSY_PAUSE_MS = 5;
const BUSY_PAUSE_MS_MAX = 250;
/** Appends taken into one transaction. Beyond it the next transaction follows at once. */
const BATCH_MAX = 2000;

export function chainSum(previous: number, row: { seq: number; type: string; version: number; at: string; data: string }): number {
  return crc32(`${row.seq}\n${row.type}\n${row.version}\n${row.at}\n${row.data}`, previous);
}

interface CommitterOptions {
  database: DatabaseSync;
  nowMs: () => number;
  busyWaitMsMax: number;
  /** Told once for each wait that takes long, and what for. */
  onBusy: () => void;
  /** In the transaction of the append. */
  onAppended: (stream: string, appended: Appended) => void;
  /** Likewise, before it: what was in the stream is gone. */
  onErased: (stream: string) => void;
  onCommitted: (streams: Set<string>) => void;
}

/**
 * Group commit: everything that was handed in during one turn of the event loop becomes one transaction and one sync to
 * disk. An append that is refused (wrong sequence, fenced out) does not disturb the others of its batch.
 */
export function createCommitter(options: CommitterOptions) {
  const { database } = options;
  const applyOne = createApplier(options);
  let queue: Pending[] = [];
  let scheduled = false;
  let running: Promise<void> = Promise.resolve();

  const flush = async () => {
    scheduled = false;
    const batch = queue.slice(0, BATCH_MAX);
    queue = queue.slice(BATCH_MAX);
    if (queue.length > 0) schedule();
    if (batch.length === 0) return;
    const settled: (() => void)[] = [];
    const touched = new Set<string>();
    try {
      await begin(options, { msMax: options.busyWaitMsMax, isWanted: () => batch.some((item) => item.options.signal?.aborted !== true) });
      for (const item of batch) {
        try {
          const result = applyOne(item);
          touched.add(item.stream);
          settled.push(() => item.resolve(result));
        } catch (error) {
          if (!(error instanceof CaissonError)) throw error;
          settled.push(() => item.reject(error));
        }
      }
      database.exec("COMMIT");
    } catch (error) {
      if (database.isOpen && database.isTransaction) database.exec("ROLLBACK");
      const translated = translateSqlite(error, "appending to the log");
      for (const item of batch) item.reject(translated);
      return;
    }
    for (const settle of settled) settle();
    options.onCommitted(touched);
  };

  const schedule = () => {
    if (scheduled) return;
    scheduled = true;
    setImmediate(() => {
      running = running.then(flush);
    });
  };

  return {
    append(stream: string, events: readonly NewEvent[], appendOptions: AppendOptions): Promise<{ lastSeq: number }> {
      const texts = encodeEvents(stream, events);
      return new Promise((resolve, reject) => {
        queue.push({ stream, events, texts, options: appendOptions, resolve, reject });
        schedule();
      });
    },
    change: createChanges(options, (work) => {
      running = running.then(work);
    }),
    /** Resolves when everything handed in so far was settled. */
    async drain(): Promise<void> {
      while (scheduled || queue.length > 0) {
        await new Promise<void>((resolve) => setImmediate(resolve));
        await running;
      }
      await running;
    },
  };
}

interface Change {
  work: () => unknown;
  resolve: (value: unknown) => void;
  reject: (error: unknown) => void;
}

/**
 * Small changes of our own, such as leases. Those of one turn of the event loop, with the same patience, share a
 * transaction and its sync to disk: a station that starts again takes a thousand leases. One that fails undoes itself
 * alone.
 */
function createChanges(options: CommitterOptions, enqueue: (work: () => Promise<void>) => void) {
  const { database } = options;
  /** By how long they wait for others. */
  const gathering = new Map<number, Change[]>();
  const flush = async (batch: readonly Change[], msMax: number) => {
    // What is asked for in this turn comes along.
    await new Promise<void>((resolve) => setImmediate(resolve));
    if (gathering.get(msMax) === batch) gathering.delete(msMax);
    const settled: (() => void)[] = [];
    try {
      await begin(options, { msMax });
      for (const change of batch) settled.push(applyChange(database, change));
      database.exec("COMMIT");
    } catch (error) {
      if (database.isOpen && database.isTransaction) database.exec("ROLLBACK");
      const translated = translateSqlite(error, "changing the log");
      for (const { reject } of batch) reject(translated);
      return;
    }
    for (const settle of settled) settle();
  };
  /** Runs a change in a transaction, after what is at work. */
  return function change<Result>(work: () => Result, wait: { msMax?: number } = {}): Promise<Result> {
    const msMax = Math.min(options.busyWaitMsMax, wait.msMax ?? options.busyWaitMsMax);
    return new Promise<Result>((resolve, reject) => {
      const made: Change = { work, resolve: resolve as Change["resolve"], reject };
      const gathered = gathering.get(msMax);
      if (gathered !== undefined && gathered.length < BATCH_MAX) return void gathered.push(made);
      const batch = [made];
      gathering.set(msMax, batch);
      enqueue(() => flush(batch, msMax));
    });
  };
}

/** One change, in the transaction that is open. Throws when the transaction is no more. */
function applyChange(database: DatabaseSync, { work, resolve, reject }: Change): () => void {
  database.exec("SAVEPOINT change");
  try {
    const value = work();
    database.exec("RELEASE change");
    return () => resolve(value);
  } catch (error) {
    if (!database.isOpen || !database.isTransaction) throw error;
    database.exec("ROLLBACK TO change; RELEASE change");
    const translated = translateSqlite(error, "changing the log");
    return () => reject(translated);
  }
}

/** One append, in the transaction that is open. */
function createApplier(options: CommitterOptions): (item: Pending) => { lastSeq: number } {
  const { database } = options;
  const find = database.prepare("SELECT last_seq, last_sum, epoch FROM streams WHERE stream = ?");
  const insert = database.prepare("INSERT INTO events (stream, seq, type, version, at, data, sum) VALUES (?, ?, ?, ?, ?, ?, ?)");
  const erase = database.prepare("DELETE FROM events WHERE stream = ?");
  const advance = database.prepare(
    "INSERT INTO streams (stream, last_seq, last_sum, at, epoch) VALUES (?, ?, ?, ?, 0) " +
      "ON CONFLICT (stream) DO UPDATE SET last_seq = excluded.last_seq, last_sum = excluded.last_sum, at = excluded.at",
  );
  return (item) => {
    const row = find.get(item.stream) as { last_seq: number; last_sum: number; epoch: number } | undefined;
    const lastSeq = row?.last_seq ?? 0;
    const { lease, expectedSeq } = item.options;
    if (lease && (row?.epoch ?? 0) !== lease.epoch) throw fencedOut(item.stream, { epoch: lease.epoch, current: row?.epoch ?? 0 });
    if (expectedSeq !== undefined && expectedSeq !== lastSeq) throw wrongSequence(item.stream, { expectedSeq, lastSeq });
    const at = new Date(options.nowMs()).toISOString();
    const after = { seq: lastSeq, sum: row?.last_sum ?? 0 };
    let { seq, sum } = after;
    if (item.options.isRetold === true && item.events.length > 0) {
      erase.run(item.stream);
      options.onErased(item.stream);
      // A chain of its own: its first row says by its sum that nothing is missing before it.
      sum = 0;
    }
    item.events.forEach((event, index) => {
      seq += 1;
      const data = item.texts[index] ?? "null";
      sum = chainSum(sum, { seq, type: event.type, version: event.version, at, data });
      insert.run(item.stream, seq, event.type, event.version, at, data, sum);
    });
    if (seq > lastSeq) {
      // The head first: a stream whose head is behind is noted by a trigger.
      options.onAppended(item.stream, { after, end: { seq, sum }, at, events: item.events });
      advance.run(item.stream, seq, sum, at);
    }
    return { lastSeq: seq };
  };
}

/** Begins a transaction as soon as nobody else has one. */
async function begin({ database, onBusy }: CommitterOptions, wait: { msMax: number; isWanted?: () => boolean }): Promise<void> {
  const startMs = performance.now();
  let told = false;
  for (let pauseMs = BUSY_PAUSE_MS; ; pauseMs = Math.min(2 * pauseMs, BUSY_PAUSE_MS_MAX)) {
    try {
      database.exec("BEGIN IMMEDIATE");
      return;
    } catch (error) {
      const waitedMs = performance.now() - startMs;
      if (sqliteFault(error) !== "busy" || waitedMs > wait.msMax || wait.isWanted?.() === false) throw error;
      if (!told && waitedMs > BUSY_NOTICE_MS) onBusy();
      told ||= waitedMs > BUSY_NOTICE_MS;
      await delay(pauseMs);
    }
  }
}
