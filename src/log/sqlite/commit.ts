import type { DatabaseSync } from "node:sqlite";
import { setTimeout as delay } from "node:timers/promises";
import { crc32 } from "node:zlib";
import { CaissonError } from "../../contract/error.ts";
import { encodeEvents, fencedOut, wrongSequence } from "../limits.ts";
import type { Lease, NewEvent } from "../log.ts";
import { sqliteFault, translateSqlite } from "./open.ts";

interface Pending {
  stream: string;
  events: readonly NewEvent[];
  texts: string[];
  expectedSeq: number | undefined;
  lease: Lease | undefined;
  resolve: (value: { lastSeq: number }) => void;
  reject: (error: unknown) => void;
}

/** How long appends wait for another process's transaction before they fail; they queue up meanwhile. */
const BUSY_WAIT_MS_MAX = 10_000;
const BUSY_PAUSE_MS = 5;
/** Appends taken into one transaction. Beyond it the next transaction follows at once. */
const BATCH_MAX = 2000;

export function chainSum(previous: number, row: { seq: number; type: string; version: number; at: string; data: string }): number {
  return crc32(`${row.seq}\n${row.type}\n${row.version}\n${row.at}\n${row.data}`, previous);
}

/**
 * Group commit: everything that was handed in during one turn of the event loop becomes one transaction and one sync to disk. An
 * append that is refused (wrong sequence, fenced out) does not disturb the others of its batch.
 */
export function createCommitter(options: { database: DatabaseSync; nowMs: () => number; onCommitted: (streams: Set<string>) => void }) {
  const { database } = options;
  const find = database.prepare("SELECT last_seq, last_sum, epoch FROM streams WHERE stream = ?");
  const insert = database.prepare("INSERT INTO events (stream, seq, type, version, at, data, sum) VALUES (?, ?, ?, ?, ?, ?, ?)");
  const advance = database.prepare(
    "INSERT INTO streams (stream, last_seq, last_sum, at, epoch) VALUES (?, ?, ?, ?, 0) " +
      "ON CONFLICT (stream) DO UPDATE SET last_seq = excluded.last_seq, last_sum = excluded.last_sum, at = excluded.at",
  );
  let queue: Pending[] = [];
  let scheduled = false;
  let running: Promise<void> = Promise.resolve();

  const applyOne = (item: Pending): { lastSeq: number } => {
    const row = find.get(item.stream) as { last_seq: number; last_sum: number; epoch: number } | undefined;
    const lastSeq = row?.last_seq ?? 0;
    if (item.lease && (row?.epoch ?? 0) !== item.lease.epoch)
      throw fencedOut(item.stream, { epoch: item.lease.epoch, current: row?.epoch ?? 0 });
    if (item.expectedSeq !== undefined && item.expectedSeq !== lastSeq) {
      throw wrongSequence(item.stream, { expectedSeq: item.expectedSeq, lastSeq });
    }
    const at = new Date(options.nowMs()).toISOString();
    let seq = lastSeq;
    let sum = row?.last_sum ?? 0;
    item.events.forEach((event, index) => {
      seq += 1;
      const data = item.texts[index] ?? "null";
      sum = chainSum(sum, { seq, type: event.type, version: event.version, at, data });
      insert.run(item.stream, seq, event.type, event.version, at, data, sum);
    });
    if (seq > lastSeq) advance.run(item.stream, seq, sum, at);
    return { lastSeq: seq };
  };

  const begin = async () => {
    const deadline = performance.now() + BUSY_WAIT_MS_MAX;
    for (;;) {
      try {
        database.exec("BEGIN IMMEDIATE");
        return;
      } catch (error) {
        if (sqliteFault(error) !== "busy" || performance.now() > deadline) throw error;
        await delay(BUSY_PAUSE_MS);
      }
    }
  };

  const flush = async () => {
    scheduled = false;
    const batch = queue.slice(0, BATCH_MAX);
    queue = queue.slice(BATCH_MAX);
    if (queue.length > 0) schedule();
    if (batch.length === 0) return;
    const settled: (() => void)[] = [];
    const touched = new Set<string>();
    try {
      await begin();
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
      if (database.isTransaction) database.exec("ROLLBACK");
      const translated = translateSqlite(error, "Appending to the log");
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
    append(
      stream: string,
      events: readonly NewEvent[],
      appendOptions: { expectedSeq?: number; lease?: Lease },
    ): Promise<{ lastSeq: number }> {
      const texts = encodeEvents(stream, events);
      return new Promise((resolve, reject) => {
        queue.push({ stream, events, texts, expectedSeq: appendOptions.expectedSeq, lease: appendOptions.lease, resolve, reject });
        schedule();
      });
    },
    /** Runs a small change of our own in a transaction, after what is queued. */
    async change<Result>(work: () => Result): Promise<Result> {
      let outcome: { value: Result } | { error: unknown } | undefined;
      running = running.then(async () => {
        try {
          await begin();
          const value = work();
          database.exec("COMMIT");
          outcome = { value };
        } catch (error) {
          if (database.isTransaction) database.exec("ROLLBACK");
          outcome = { error: translateSqlite(error, "Changing the log") };
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
