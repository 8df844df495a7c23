import type { DatabaseSync } from "node:sqlite";
import type { LeaseClock } from "../lease-clock.ts";
import { fencedOut } from "../limits.ts";
import type { Lease, Log } from "../log.ts";

interface LeaseRow {
  stream: string;
  epoch: number;
  owner: string | null;
  expires_at: number | null;
  boot: string | null;
  expires_ticks: number | null;
}

/** Longer waits are pointless: a renewal is retried soon, and a release only saves the next holder a moment. */
const RENEW_WAIT_MS_MAX = 2_000;

/** The leases of streams, stored in the rows of the streams. */
export function createLeases(options: {
  database: DatabaseSync;
  nowMs: () => number;
  clock: LeaseClock;
  change: <Result>(work: () => Result, wait?: { msMax?: number }) => Promise<Result>;
}): Pick<Log, "acquire" | "holder" | "lastLease" | "renew" | "release"> {
  const { database, nowMs, clock, change } = options;
  const select = database.prepare("SELECT stream, epoch, owner, expires_at, boot, expires_ticks FROM streams WHERE stream = ?");
  const find = (stream: string) => select.get(stream) as unknown as LeaseRow | undefined;
  const lastLeaseOf = (row: LeaseRow | undefined): Lease | null =>
    row?.owner && row.expires_at !== null ? { stream: row.stream, holder: row.owner, epoch: row.epoch, expiresAtMs: row.expires_at } : null;
  const holderOf = (row: LeaseRow | undefined): Lease | null => {
    const lease = lastLeaseOf(row);
    if (lease === null || row === undefined) return null;
    const sameBoot = row.boot === clock.boot && row.expires_ticks !== null;
    const leftMs = sameBoot ? Number(row.expires_ticks) - clock.nowMs() : lease.expiresAtMs - nowMs();
    return leftMs > 0 ? lease : null;
  };
  return {
    acquire(stream, { holder: owner, ttlMs, holderGone }) {
      return change(() => {
        const row = find(stream);
        const held = holderOf(row);
        if (held && !holderGone?.(held.holder)) return null;
        const lease: Lease = { stream, holder: owner, epoch: (row?.epoch ?? 0) + 1, expiresAtMs: nowMs() + ttlMs };
        database
          .prepare(
            "INSERT INTO streams (stream, last_seq, last_sum, at, epoch, owner, expires_at, boot, expires_ticks) VALUES (?, 0, 0, ?, ?, ?, ?, ?, ?) " +
              "ON CONFLICT (stream) DO UPDATE SET epoch = excluded.epoch, owner = excluded.owner, expires_at = excluded.expires_at, " +
              "boot = excluded.boot, expires_ticks = excluded.expires_ticks",
          )
          .run(stream, new Date(nowMs()).toISOString(), lease.epoch, owner, lease.expiresAtMs, clock.boot, clock.nowMs() + ttlMs);
        return lease;
      });
    },
    holder: async (stream) => holderOf(find(stream)),
    lastLease: async (stream) => lastLeaseOf(find(stream)),
    renew(lease, { ttlMs }) {
      return change(
        () => {
          const row = find(lease.stream);
          if (row?.epoch !== lease.epoch || row.owner === null)
            throw fencedOut(lease.stream, { epoch: lease.epoch, current: row?.epoch ?? 0 });
          const expiresAtMs = nowMs() + ttlMs;
          database
            .prepare("UPDATE streams SET expires_at = ?, boot = ?, expires_ticks = ? WHERE stream = ?")
            .run(expiresAtMs, clock.boot, clock.nowMs() + ttlMs, lease.stream);
          return { ...lease, expiresAtMs };
        },
        { msMax: RENEW_WAIT_MS_MAX },
      );
    },
    release(lease) {
      return change(
        () => {
          database
            .prepare("UPDATE streams SET owner = NULL, expires_at = NULL WHERE stream = ? AND epoch = ?")
            .run(lease.stream, lease.epoch);
        },
        { msMax: RENEW_WAIT_MS_MAX },
      );
    },
  };
}
