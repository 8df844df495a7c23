import { mkdirSync } from "node:fs";
import { dirname } from "node:path";
import { CaissonError } from "../../contract/error.ts";
import { fencedOut, READ_LIMIT_DEFAULT, STREAMS_LIMIT_DEFAULT } from "../limits.ts";
import type { Lease, Log, StoredEvent } from "../log.ts";
import { subscription } from "../subscription.ts";
import { checkDatabase } from "./check.ts";
import { createCommitter } from "./commit.ts";
import { openDatabase, translateSqlite } from "./open.ts";

interface EventRow {
  seq: number;
  type: string;
  version: number;
  at: string;
  data: string;
}

interface StreamRow {
  stream: string;
  last_seq: number;
  at: string;
  epoch: number;
  owner: string | null;
  expires_at: number | null;
}

/** How often a log with subscribers looks whether another process appended. One integer is read each time. */
const OTHER_PROCESS_POLL_MS = 20;

/** The embedded log: one SQLite file that several processes may share. */
export function createSqliteLog(options: { path: string; nowMs?: () => number }): Log {
  const nowMs = options.nowMs ?? Date.now;
  mkdirSync(dirname(options.path), { recursive: true, mode: 0o700 });
  const database = openDatabase(options.path);
  const wakeups = createWakeups(() => Number((database.prepare("PRAGMA data_version").get() as { data_version: number }).data_version));
  const committer = createCommitter({ database, nowMs, onCommitted: (streams) => wakeups.wake(streams) });
  const select = database.prepare("SELECT seq, type, version, at, data FROM events WHERE stream = ? AND seq >= ? ORDER BY seq LIMIT ?");
  const selectStream = database.prepare("SELECT stream, last_seq, at, epoch, owner, expires_at FROM streams WHERE stream = ?");
  const findStream = (stream: string) => selectStream.get(stream) as unknown as StreamRow | undefined;
  const holderOf = (row: StreamRow | undefined): Lease | null =>
    row?.owner && row.expires_at !== null && row.expires_at > nowMs()
      ? { stream: row.stream, owner: row.owner, epoch: row.epoch, expiresAtMs: row.expires_at }
      : null;
  let closed = false;

  const readNow = (stream: string, fromSeq: number, limit: number): StoredEvent[] => {
    try {
      const rows = select.all(stream, fromSeq, limit) as unknown as EventRow[];
      return rows.map((row) => ({ stream, seq: row.seq, type: row.type, version: row.version, at: row.at, data: JSON.parse(row.data) }));
    } catch (error) {
      throw translateSqlite(error, `Reading ${stream} from ${fromSeq}`);
    }
  };

  return {
    append: (stream, events, appendOptions = {}) => committer.append(stream, events, appendOptions),
    async read(stream, { fromSeq = 1, limit = READ_LIMIT_DEFAULT } = {}) {
      return readNow(stream, fromSeq, limit);
    },
    async lastSeq(stream) {
      return findStream(stream)?.last_seq ?? 0;
    },
    subscribe(stream, { fromSeq = 1, signal } = {}) {
      return subscription({ stream, fromSeq, signal, wakeups, read: async (from, limit) => (closed ? [] : readNow(stream, from, limit)) });
    },
    async streams({ prefix = "", limit = STREAMS_LIMIT_DEFAULT } = {}) {
      const rows = database
        .prepare(
          "SELECT stream, last_seq, at FROM streams WHERE substr(stream, 1, ?) = ? AND last_seq > 0 ORDER BY at DESC, stream LIMIT ?",
        )
        .all(prefix.length, prefix, limit) as unknown as StreamRow[];
      return rows.map((row) => ({ stream: row.stream, lastSeq: row.last_seq, at: row.at }));
    },
    acquire(stream, { owner, ttlMs, ownerGone }) {
      return committer.change(() => {
        const row = findStream(stream);
        const held = holderOf(row);
        if (held && !ownerGone?.(held.owner)) return null;
        const lease: Lease = { stream, owner, epoch: (row?.epoch ?? 0) + 1, expiresAtMs: nowMs() + ttlMs };
        database
          .prepare(
            "INSERT INTO streams (stream, last_seq, last_sum, at, epoch, owner, expires_at) VALUES (?, 0, 0, ?, ?, ?, ?) " +
              "ON CONFLICT (stream) DO UPDATE SET epoch = excluded.epoch, owner = excluded.owner, expires_at = excluded.expires_at",
          )
          .run(stream, new Date(nowMs()).toISOString(), lease.epoch, owner, lease.expiresAtMs);
        return lease;
      });
    },
    async holder(stream) {
      return holderOf(findStream(stream));
    },
    renew(lease, { ttlMs }) {
      return committer.change(() => {
        const row = findStream(lease.stream);
        if (row?.epoch !== lease.epoch || row.owner === null)
          throw fencedOut(lease.stream, { epoch: lease.epoch, current: row?.epoch ?? 0 });
        const expiresAtMs = nowMs() + ttlMs;
        database.prepare("UPDATE streams SET expires_at = ? WHERE stream = ?").run(expiresAtMs, lease.stream);
        return { ...lease, expiresAtMs };
      });
    },
    release(lease) {
      return committer.change(() => {
        database
          .prepare("UPDATE streams SET owner = NULL, expires_at = NULL WHERE stream = ? AND epoch = ?")
          .run(lease.stream, lease.epoch);
      });
    },
    remove(stream) {
      return committer.change(() => {
        database.prepare("DELETE FROM events WHERE stream = ?").run(stream);
        const { changes } = database.prepare("DELETE FROM streams WHERE stream = ?").run(stream);
        if (Number(changes) === 0) throw new CaissonError("not_found", `There is no stream ${stream}.`);
      });
    },
    async check() {
      return checkDatabase(database);
    },
    async [Symbol.asyncDispose]() {
      if (closed) return;
      await committer.drain();
      closed = true;
      wakeups.close();
      database.close();
    },
  };
}

function createWakeups(dataVersion: () => number) {
  const byStream = new Map<string, Set<() => void>>();
  let timer: NodeJS.Timeout | undefined;
  let seenVersion = 0;
  const wakeAll = () => {
    for (const set of [...byStream.values()]) for (const wake of [...set]) wake();
  };
  return {
    listen(stream: string, wake: () => void) {
      const set = byStream.get(stream) ?? new Set();
      byStream.set(stream, set.add(wake));
      if (!timer) {
        seenVersion = dataVersion();
        // The version changes with every commit of another connection, and never with our own.
        timer = setInterval(() => {
          const version = dataVersion();
          if (version === seenVersion) return;
          seenVersion = version;
          wakeAll();
        }, OTHER_PROCESS_POLL_MS);
      }
      return () => {
        set.delete(wake);
        if (set.size === 0) byStream.delete(stream);
        if (byStream.size === 0) {
          clearInterval(timer);
          timer = undefined;
        }
      };
    },
    wake(streams: Set<string>) {
      for (const stream of streams) for (const wake of [...(byStream.get(stream) ?? [])]) wake();
    },
    close() {
      clearInterval(timer);
      timer = undefined;
      wakeAll();
    },
  };
}
