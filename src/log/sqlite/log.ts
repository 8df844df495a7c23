import { mkdirSync } from "node:fs";
import { dirname } from "node:path";
import { CaissonError } from "../../contract/error.ts";
import { type LeaseClock, machineClock } from "../lease-clock.ts";
import { fencedOut, READ_LIMIT_DEFAULT, STREAMS_LIMIT_DEFAULT } from "../limits.ts";
import type { Lease, Log, StoredEvent } from "../log.ts";
import { subscription } from "../subscription.ts";
import { checkDatabase } from "./check.ts";
import { BUSY_WAIT_MS_MAX, createCommitter } from "./commit.ts";
import { createHeads } from "./heads.ts";
import { openDatabase, sqliteFault, translateSqlite } from "./open.ts";

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
  boot: string | null;
  expires_ticks: number | null;
}

/** How often a log with subscribers looks whether another process appended. One integer is read each time. */
const OTHER_PROCESS_POLL_MS = 20;
/** A renewal or release that has to wait longer is of no use: the one is tried again soon, the other saves the next owner a moment. */
const RENEW_WAIT_MS_MAX = 2_000;

/** The embedded log: one SQLite file that several processes may share. */
export function createSqliteLog(options: {
  path: string;
  nowMs?: () => number;
  leaseClock?: LeaseClock;
  /** How long to wait for another process that has the log to itself, and who is told that we wait. */
  busyWaitMsMax?: number;
  onBusy?: () => void;
}): Log {
  const nowMs = options.nowMs ?? Date.now;
  const leaseClock = options.leaseClock ?? machineClock();
  mkdirSync(dirname(options.path), { recursive: true, mode: 0o700 });
  const database = openDatabase(options.path);
  const wakeups = createWakeups(() => {
    try {
      return Number((database.prepare("PRAGMA data_version").get() as { data_version: number }).data_version);
    } catch {
      // Those who are woken read, and are told what is wrong.
      return Number.NaN;
    }
  });
  const select = database.prepare("SELECT seq, type, version, at, data FROM events WHERE stream = ? AND seq >= ? ORDER BY seq LIMIT ?");
  const readNow = (stream: string, fromSeq: number, limit: number): StoredEvent[] =>
    readRows(stream, fromSeq, () => select.iterate(stream, fromSeq, limit) as Iterable<unknown> as Iterable<EventRow>);
  const committer = createCommitter({
    database,
    nowMs,
    busyWaitMsMax: options.busyWaitMsMax ?? BUSY_WAIT_MS_MAX,
    onBusy: () => options.onBusy?.(),
    onAppended: (stream, appended) => heads.advance(stream, appended),
    onCommitted: (streams) => wakeups.wake(streams),
  });
  const heads = createHeads({ database, read: readNow, change: committer.change });
  const selectStream = database.prepare(
    "SELECT stream, last_seq, at, epoch, owner, expires_at, boot, expires_ticks FROM streams WHERE stream = ?",
  );
  const findStream = (stream: string) => selectStream.get(stream) as unknown as StreamRow | undefined;
  const lastLeaseOf = (row: StreamRow | undefined): Lease | null =>
    row?.owner && row.expires_at !== null ? { stream: row.stream, owner: row.owner, epoch: row.epoch, expiresAtMs: row.expires_at } : null;
  const holderOf = (row: StreamRow | undefined): Lease | null => {
    const lease = lastLeaseOf(row);
    if (lease === null || row === undefined) return null;
    const sameBoot = row.boot === leaseClock.boot && row.expires_ticks !== null;
    const leftMs = sameBoot ? Number(row.expires_ticks) - leaseClock.nowMs() : lease.expiresAtMs - nowMs();
    return leftMs > 0 ? lease : null;
  };
  let closed = false;

  return {
    append: (stream, events, appendOptions = {}) => committer.append(stream, events, appendOptions),
    async read(stream, { fromSeq = 1, limit = READ_LIMIT_DEFAULT } = {}) {
      const events = readNow(stream, fromSeq, limit);
      const damage = events.find((event) => event.damage !== undefined)?.damage;
      // Whoever looks at heads only would not know. A log that cannot be written to stays as it is.
      if (damage !== undefined) await heads.noteDamage(stream, damage).catch(() => undefined);
      return events;
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
            "INSERT INTO streams (stream, last_seq, last_sum, at, epoch, owner, expires_at, boot, expires_ticks) VALUES (?, 0, 0, ?, ?, ?, ?, ?, ?) " +
              "ON CONFLICT (stream) DO UPDATE SET epoch = excluded.epoch, owner = excluded.owner, expires_at = excluded.expires_at, " +
              "boot = excluded.boot, expires_ticks = excluded.expires_ticks",
          )
          .run(stream, new Date(nowMs()).toISOString(), lease.epoch, owner, lease.expiresAtMs, leaseClock.boot, leaseClock.nowMs() + ttlMs);
        return lease;
      });
    },
    async holder(stream) {
      return holderOf(findStream(stream));
    },
    async lastLease(stream) {
      return lastLeaseOf(findStream(stream));
    },
    renew(lease, { ttlMs }) {
      return committer.change(
        () => {
          const row = findStream(lease.stream);
          if (row?.epoch !== lease.epoch || row.owner === null)
            throw fencedOut(lease.stream, { epoch: lease.epoch, current: row?.epoch ?? 0 });
          const expiresAtMs = nowMs() + ttlMs;
          database
            .prepare("UPDATE streams SET expires_at = ?, boot = ?, expires_ticks = ? WHERE stream = ?")
            .run(expiresAtMs, leaseClock.boot, leaseClock.nowMs() + ttlMs, lease.stream);
          return { ...lease, expiresAtMs };
        },
        { msMax: RENEW_WAIT_MS_MAX },
      );
    },
    release(lease) {
      return committer.change(
        () => {
          database
            .prepare("UPDATE streams SET owner = NULL, expires_at = NULL WHERE stream = ? AND epoch = ?")
            .run(lease.stream, lease.epoch);
        },
        { msMax: RENEW_WAIT_MS_MAX },
      );
    },
    remove(stream) {
      return committer.change(() => {
        database.prepare("DELETE FROM events WHERE stream = ?").run(stream);
        heads.remove(stream);
        const { changes } = database.prepare("DELETE FROM streams WHERE stream = ?").run(stream);
        if (Number(changes) === 0) throw new CaissonError("not_found", `there is no stream ${stream}`);
      });
    },
    head: (stream) => heads.head(stream),
    heads: (asked) => heads.list(asked),
    noteDamage: (stream, damage) => heads.noteDamage(stream, damage),
    async check() {
      const damages = checkDatabase(database);
      // A courtesy to those who look at heads only.
      for (const { stream, text } of damages) if (stream !== null) await heads.noteDamage(stream, text).catch(() => undefined);
      return damages;
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

/** Row by row, so that one that is damaged takes nothing else along. */
function readRows(stream: string, fromSeq: number, rows: () => Iterable<EventRow>): StoredEvent[] {
  const events: StoredEvent[] = [];
  try {
    for (const row of rows()) {
      const { seq, type, version, at } = row;
      const data = parsed(row.data);
      if (data === undefined) events.push({ stream, seq, type, version, at, data: null, damage: `event ${seq} of ${stream} is not JSON` });
      else events.push({ stream, seq, type, version, at, data });
    }
  } catch (error) {
    if (events.length === 0 || sqliteFault(error) !== "damaged") throw translateSqlite(error, `reading ${stream} from ${fromSeq}`);
    const last = events.at(-1);
    const seq = (last?.seq ?? 0) + 1;
    const damage = `nothing can be read of ${stream} from event ${seq} on`;
    events.push({ stream, seq, type: "damaged", version: 1, at: last?.at ?? "", data: null, damage });
  }
  return events;
}

function parsed(text: string): StoredEvent["data"] | undefined {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
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
