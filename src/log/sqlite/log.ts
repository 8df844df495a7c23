import { mkdirSync } from "node:fs";
import { dirname } from "node:path";
import { CaissonError } from "../../contract/error/error.ts";
import { ignore, ignoring } from "../../lib/failures.ts";
import { type LeaseClock, machineClock } from "../lease-clock.ts";
import { READ_LIMIT_DEFAULT, STREAMS_LIMIT_DEFAULT } from "../limits.ts";
import type { Log } from "../log.ts";
import { type FindProjection, projectionOf } from "../projection.ts";
import { pageOf, type ReadBudget, subscription } from "../subscription.ts";
import { checkDatabase } from "./check.ts";
import { BUSY_WAIT_MS_MAX, createCommitter } from "./commit.ts";
import { createFeed } from "./feed.ts";
import { createHeads } from "./heads.ts";
import { createInherited } from "./inherited.ts";
import { createLeases } from "./leases.ts";
import { describeLockHolder } from "./lock-holder.ts";
import { openDatabase } from "./open.ts";
import { createReader } from "./read-events.ts";
import { endOfPrefix } from "./stale-heads.ts";
import { createWakeups } from "./wakeups.ts";

interface StreamRow {
  stream: string;
  last_seq: number;
  at: string;
}

/** The embedded log: one SQLite file that several processes may share. */
export function createSqliteLog(options: {
  path: string;
  nowMs?: () => number;
  leaseClock?: LeaseClock;
  /** How long to wait for another process that holds the log, and where to send the notice. */
  busyWaitMsMax?: number;
  onBusy?: (text: string) => void;
  /** Selects the projection of a stream; defaults to the built-in ones. */
  projectionOf?: FindProjection;
}): Log {
  const nowMs = options.nowMs ?? Date.now;
  mkdirSync(dirname(options.path), { recursive: true, mode: 0o700 });
  const database = openDatabase(options.path);
  const dataVersion = database.prepare("PRAGMA data_version");
  const wakeups = createWakeups(() => {
    const row = ignoring("the readers that this wakes report the failure", () => dataVersion.get() as { data_version: number });
    return Number(row?.data_version);
  });
  const inherited = createInherited(database);
  const { read, readTyped } = createReader(database, inherited);
  const committer = createCommitter({
    database,
    inherited,
    nowMs,
    busyWaitMsMax: options.busyWaitMsMax ?? BUSY_WAIT_MS_MAX,
    onBusy: () => options.onBusy?.(`${describeLockHolder(options.path)} holds the log; waiting for it`),
    onAppended: (stream, appended) => heads.advance(stream, appended),
    onErased: (stream) => feed.forget(stream),
    onCommitted: (streams) => wakeups.wake(streams),
  });
  const heads = createHeads({ database, projectionOf: options.projectionOf ?? projectionOf, read, change: committer.change });
  const feed = createFeed({ database, read, readTyped });
  const leases = createLeases({ database, nowMs, clock: options.leaseClock ?? machineClock(), change: committer.change });
  const selectEnd = database.prepare("SELECT last_seq FROM streams WHERE stream = ?");
  const lastSeqOf = (stream: string) => (selectEnd.get(stream) as { last_seq: number } | undefined)?.last_seq ?? 0;
  let closed = false;

  return {
    append: (stream, events, appendOptions = {}) => committer.append(stream, events, appendOptions),
    async read(stream, { fromSeq = 1, limit = READ_LIMIT_DEFAULT, bytesMax = Number.POSITIVE_INFINITY } = {}) {
      const events = read(stream, fromSeq, { limit, bytes: bytesMax });
      const damage = events.find((event) => event.damage !== undefined)?.damage;
      // Otherwise readers that use only heads would not see the damage.
      if (damage !== undefined) await ignore(heads.noteDamage(stream, damage), "a read-only log can still be read");
      return events;
    },
    lastSeq: async (stream) => lastSeqOf(stream),
    subscribe(stream, { fromSeq = 1, signal, known } = {}) {
      const page = async (from: number, budget: ReadBudget) => pageOf(closed ? [] : read(stream, from, budget), from);
      return subscription({ from: fromSeq, signal, listen: (wake) => wakeups.listen(stream, wake), read: page, known });
    },
    subscribeAll({ prefix = "", types, afterPosition = 0, restMs, signal } = {}) {
      const filter = { prefixes: [prefix].flat(), types: types === undefined ? null : JSON.stringify(types) };
      const read = async (from: number, budget: ReadBudget) =>
        closed ? { events: [], next: from } : feed.page(from, { ...filter, budget });
      return subscription({ from: afterPosition + 1, signal, listen: (wake) => wakeups.listen(null, wake), read, restMs });
    },
    lastPosition: async () => feed.lastPosition(),
    async streams({ prefix = "", limit = STREAMS_LIMIT_DEFAULT } = {}) {
      const rows = database
        .prepare(
          "SELECT stream, last_seq, at FROM streams WHERE stream >= ? AND stream < ? AND last_seq > 0 ORDER BY at DESC, stream LIMIT ?",
        )
        .all(prefix, endOfPrefix(prefix), limit) as unknown as StreamRow[];
      return rows.map((row) => ({ stream: row.stream, lastSeq: row.last_seq, at: row.at }));
    },
    ...leases,
    remove(stream) {
      return committer.change(() => {
        inherited.release(stream);
        heads.remove(stream);
        if (lastSeqOf(stream) > 0) feed.forget(stream);
        const { changes } = database.prepare("DELETE FROM streams WHERE stream = ?").run(stream);
        if (Number(changes) === 0) throw new CaissonError("not_found", `there is no stream ${stream}`);
      });
    },
    head: (stream) => heads.head(stream),
    heads: (query) => heads.list(query),
    noteDamage: (stream, damage) => heads.noteDamage(stream, damage),
    async check() {
      const damages = checkDatabase(database);
      for (const { stream, text } of damages)
        if (stream !== null) await ignore(heads.noteDamage(stream, text), "the damage is returned; the head is only a copy of it");
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
