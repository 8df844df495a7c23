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
    /** Runs a small change of our own in a transaction, after what is queued. */
    async change<Result>(work: () => Result, wait: { msMax?: number } = {}): Promise<Result> {
      let outcome: { value: Result } | { error: unknown } | undefined;
      running = running.then(async () => {
        try {
          await begin(options, { msMax: Math.min(options.busyWaitMsMax, wait.msMax ?? options.busyWaitMsMax) });
          const value = work();
          database.exec("COMMIT");
          outcome = { value };
        } catch (error) {
          if (database.isTransaction) database.exec("ROLLBACK");
          outcome = { error: translateSqlite(error, "changing the log") };
        }
      });
      await running;
      if (outcome && "value" in outcome) return outcome.value;
      throw outcome?.error;
    },
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

/** One append, in the transaction that is open. */
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
    const lastSeq = row?.last_seq ?? 0;
    const { lease, expectedSeq } = item.options;
    if (lease && (row?.epoch ?? 0) !== lease.epoch) throw fencedOut(item.stream, { epoch: lease.epoch, current: row?.epoch ?? 0 });
    if (expectedSeq !== undefined && expectedSeq !== lastSeq) throw wrongSequence(item.stream, { expectedSeq, lastSeq });
    const at = new Date(options.nowMs()).toISOString();
    const after = { seq: lastSeq, sum: row?.last_sum ?? 0 };
    let { seq, sum } = after;
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
