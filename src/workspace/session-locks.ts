import { CaissonError } from "../contract/error.ts";
import type { HostProcess, ProcessIdentity } from "../contract/process-identity.ts";
import { LockOwner, type Session, type SessionLock } from "../contract/session.ts";
import type { NewSessionEvent } from "../contract/session-event.ts";
import { jsonOrNull } from "../lib/json-or-null.ts";
import { type HeldLease, holdLease } from "../log/hold-lease.ts";
import type { Log } from "../log/log.ts";

/** A lock lives this long without being renewed; its holder renews it while it works. */
export const LOCK_TTL_MS = 60 * 60_000;

/** Who works in a session: one at a time. */
export interface SessionLocks {
  /**
   * Exclusive, and renewed until it is disposed of; `lost` says that somebody took it away. The same run gets it again,
   * after its process died. Throws `conflict` saying who holds it, since when and how to unlock.
   */
  lock(id: string, run: string): Promise<HeldLease>;
  lockOf(id: string): Promise<SessionLock | null>;
  /** Throws what `lock` would throw now. */
  checkFree(id: string): Promise<void>;
  /**
   * Takes a lock away from whoever holds it; `force` also from one who may still be working. Throws `conflict`,
   * `not_found`.
   */
  breakLock(id: string, options: { force: boolean }): Promise<void>;
}

export function createSessionLocks(options: {
  log: Log;
  identity: HostProcess;
  alive: (owner: ProcessIdentity) => boolean;
  now: () => Date;
  stream: (id: string) => string;
  get: (id: string) => Promise<Session>;
  update: (id: string, facts: Pick<Session, "lastUsedAt">) => Promise<Session>;
  record: (id: string, event: NewSessionEvent) => Promise<void>;
}): SessionLocks {
  const { log, identity, now, stream, get, update, record } = options;
  const lockOf = async (id: string): Promise<SessionLock | null> => {
    const held = await log.holder(stream(id));
    if (!held) return null;
    const owner = parseOwner(held.owner);
    return { owner, epoch: held.epoch, expiresAtMs: held.expiresAtMs, stale: owner.host === identity.host && !options.alive(owner) };
  };
  return {
    lockOf,
    async lock(id, run) {
      await get(id);
      const owner = JSON.stringify({ run, ...identity, since: now().toISOString() } satisfies LockOwner);
      const gone = (other: string) => {
        const parsed = parseOwner(other);
        return parsed.run === run || (parsed.host === identity.host && !options.alive(parsed));
      };
      const held = await holdLease(log, stream(id), { owner, ttlMs: LOCK_TTL_MS, ownerGone: gone });
      if (!held) throw await lockedBy(id, await lockOf(id));
      await update(id, { lastUsedAt: now().toISOString() });
      return held;
    },
    async checkFree(id) {
      const held = await lockOf(id);
      if (held && !held.stale) throw await lockedBy(id, held);
    },
    async breakLock(id, { force }) {
      await get(id);
      const held = await lockOf(id);
      if (!held) return;
      if (!held.stale && !force) throw await lockedBy(id, held);
      const lease = await log.acquire(stream(id), { owner: "nobody", ttlMs: 1, ownerGone: () => true });
      if (!lease) return;
      await log.release(lease);
      await record(id, { type: "session.unlocked", data: { run: held.owner.run, forced: !held.stale } });
    },
  };
}

async function lockedBy(id: string, lock: SessionLock | null): Promise<CaissonError> {
  if (!lock) return new CaissonError("conflict", `the session ${id} was locked just now`, { hint: "Try again." });
  const { owner } = lock;
  const where = `process ${owner.pid} on ${owner.host}`;
  return new CaissonError(
    "conflict",
    `the session ${id} is in use by ${owner.run} (${where})${owner.since === undefined ? "" : ` since ${owner.since}`}`,
    {
      hint: `Wait for it, stop it with \`caisson stop ${owner.run}\`, or, if it is dead, \`caisson session unlock --force ${id}\`.`,
      details: { owner },
    },
  );
}

function parseOwner(text: string): LockOwner {
  const parsed = LockOwner.safeParse(jsonOrNull(text));
  return parsed.success ? parsed.data : { run: text, pid: 0, host: "", startTicks: 0, bootId: "" };
}
