import type { DatabaseSync } from "node:sqlite";
import { setTimeout as delay } from "node:timers/promises";
import { crc32 } from "node:zlib";
import { CaissonError } from "../../contract/error/error.ts";
import { checkInherits, encodeEvents, fencedOut, wrongSequence } from "../limits.ts";
import type { AppendOptions, NewEvent } from "../log.ts";
import type { Inherited } from "./inherited.ts";
import { sqliteFault, translateSqlite } from "./open.ts";

interface Pending {
  stream: string;
  events: readonly NewEvent[];
  texts: string[];
  options: AppendOptions;
  resolve: (value: { lastSeq: number }) => void;
  reject: (error: unknown) => void;
}

/** An append: the stream's end before and after it. The checksum over all events makes each end unique. */
export interface Appended {
  after: { seq: number; sum: number };
  end: { seq: number; sum: number };
  at: string;
  events: readonly NewEvent[];
}

/**
 * How long a change waits for another process's transaction before it fails. Later changes queue up behind it. A backup
 * that copies the file, or a disk that stalls under another writer, takes seconds or minutes, and a writer can only
 * wait.
 */
export const BUSY_WAIT_MS_MAX = 10 * 60_000;
/** How long to wait before we notify the user. */
const BUSY_NOTICE_MS = 3_000;
/** The pause grows because each attempt blocks the whole process for a moment. */
const BUSY_PAUSE_MS = 5;
const BUSY_PAUSE_MS_MAX = 250;
/** Maximum number of appends per transaction. If there are more, the next transaction follows immediately. */
const BATCH_MAX = 2000;

export function chainSum(previous: number, row: { seq: number; type: string; version: number; at: string; data: string }): number {
  return crc32(`${row.seq}\n${row.type}\n${row.version}\n${row.at}\n${row.data}`, previous);
}

interface CommitterOptions {
  database: DatabaseSync;
  inherited: Inherited;
  nowMs: () => number;
  busyWaitMsMax: number;
  /** Called once for each wait that takes long. */
  onBusy: () => void;
  /** Called in the transaction of the append. */
  onAppended: (stream: string, appended: Appended) => void;
  /** Called in the same transaction before `onAppended`, if the old events of the stream were deleted. */
  onErased: (stream: string) => void;
  onCommitted: (streams: Set<string>) => void;
}

/**
 * Group commit: all appends requested in one turn of the event loop become one transaction and one sync to disk. A
 * rejected append (wrong sequence, fenced out) does not affect the rest of its batch.
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
    change: createChangeQueue(options, (work) => {
      running = running.then(work);
    }),
    /** Resolves when all appends and changes requested so far have settled. */
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
 * Queues small internal changes, such as leases. Changes with the same maximum wait that are requested in one turn of
 * the event loop share a transaction and its sync to disk: a restarting station takes a thousand leases. If one change
 * fails, only that one is rolled back.
 */
function createChangeQueue(options: CommitterOptions, enqueue: (work: () => Promise<void>) => void) {
  const { database } = options;
  /** Open batches by their maximum wait. */
  const gathering = new Map<number, Change[]>();
  const flush = async (batch: readonly Change[], msMax: number) => {
    // Changes requested later in this turn join the batch.
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
  /** Runs a change in a transaction, after all earlier work. */
  return function change<Result>(work: () => Result, wait: { msMax?: number } = {}): Promise<Result> {
    const msMax = Math.min(options.busyWaitMsMax, wait.msMax ?? options.busyWaitMsMax);
    return new Promise<Result>((resolve, reject) => {
      const queuedChange: Change = { work, resolve: resolve as Change["resolve"], reject };
      const gathered = gathering.get(msMax);
      if (gathered !== undefined && gathered.length < BATCH_MAX) return void gathered.push(queuedChange);
      const batch = [queuedChange];
      gathering.set(msMax, batch);
      enqueue(() => flush(batch, msMax));
    });
  };
}

/** Runs one change in the open transaction. Throws if that ended the transaction. */
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

/** Returns a function that performs one append in the open transaction. */
function createApplier(options: CommitterOptions): (item: Pending) => { lastSeq: number } {
  const { database } = options;
  const find = database.prepare("SELECT last_seq, last_sum, epoch FROM streams WHERE stream = ?");
  const insert = database.prepare("INSERT INTO events (stream, seq, type, version, at, data, sum) VALUES (?, ?, ?, ?, ?, ?, ?)");
  const advance = database.prepare(
    "INSERT INTO streams (stream, last_seq, last_sum, at, epoch) VALUES (?, ?, ?, ?, 0) " +
      "ON CONFLICT (stream) DO UPDATE SET last_seq = excluded.last_seq, last_sum = excluded.last_sum, at = excluded.at",
  );
  return (item) => {
    const row = find.get(item.stream) as { last_seq: number; last_sum: number; epoch: number } | undefined;
    let lastSeq = row?.last_seq ?? 0;
    const { lease, expectedSeq, inherits } = item.options;
    if (lease && (row?.epoch ?? 0) !== lease.epoch) throw fencedOut(item.stream, { epoch: lease.epoch, current: row?.epoch ?? 0 });
    if (expectedSeq !== undefined && expectedSeq !== lastSeq) throw wrongSequence(item.stream, { expectedSeq, lastSeq });
    if (inherits !== undefined) {
      checkInherits(item, lastSeq);
      options.inherited.begin(item.stream, inherits);
      lastSeq = inherits.seq;
    }
    const at = new Date(options.nowMs()).toISOString();
    // The rows of an heir are a new chain, as those of a compacted stream.
    const after = { seq: lastSeq, sum: row?.last_sum ?? 0 };
    let { seq, sum } = after;
    if (item.options.isRetold === true && item.events.length > 0) {
      options.inherited.release(item.stream);
      options.onErased(item.stream);
      // Starts a new chain: the checksum of its first row shows that no event before it is missing.
      sum = 0;
    }
    item.events.forEach((event, index) => {
      seq += 1;
      const data = item.texts[index] ?? "null";
      sum = chainSum(sum, { seq, type: event.type, version: event.version, at, data });
      insert.run(item.stream, seq, event.type, event.version, at, data, sum);
    });
    if (seq > lastSeq) {
      // The head comes first: a trigger marks a stream as stale if its head is behind.
      options.onAppended(item.stream, { after, end: { seq, sum }, at, events: item.events });
      advance.run(item.stream, seq, sum, at);
    }
    return { lastSeq: seq };
  };
}

/** Begins a transaction as soon as no other process has one open. */
async function begin({ database, onBusy }: CommitterOptions, wait: { msMax: number; isWanted?: () => boolean }): Promise<void> {
  const startMs = performance.now();
  let hasNotified = false;
  for (let pauseMs = BUSY_PAUSE_MS; ; pauseMs = Math.min(2 * pauseMs, BUSY_PAUSE_MS_MAX)) {
    try {
      database.exec("BEGIN IMMEDIATE");
      return;
    } catch (error) {
      const waitedMs = performance.now() - startMs;
      if (sqliteFault(error) !== "busy" || waitedMs > wait.msMax || wait.isWanted?.() === false) throw error;
      if (!hasNotified && waitedMs > BUSY_NOTICE_MS) onBusy();
      hasNotified ||= waitedMs > BUSY_NOTICE_MS;
      await delay(pauseMs);
    }
  }
}
