import { setTimeout as delay } from "node:timers/promises";
import { CaissonError } from "../contract/error.ts";
import type { HostProcess, ProcessIdentity } from "../contract/process-identity.ts";
import { LockOwner, type Session, type SessionLock } from "../contract/session.ts";
import type { NewSessionEvent } from "../contract/session-event.ts";
import { jsonOrNull } from "../lib/json-or-null.ts";
import { randomLetters } from "../lib/new-id.ts";
import { type HeldLease, holdLease } from "../log/hold-lease.ts";
import type { Log } from "../log/log.ts";
import { createSharedHolds } from "./shared-holds.ts";

/** A lock lives this long without being renewed; its holder renews it while it works. */
export const LOCK_TTL_MS = 60 * 60_000;

/** Whoever looks at files or changes them by hand is done soon, and is waited for. */
const BRIEF_WAIT_MS_MAX = 30_000;
const BRIEF_POLL_MS = 10;
/** Looks without a pause between them must not keep everybody else out. */
const SHARED_MS_MAX = 2_000;
const brief = { look: "view_", edit: "edit_" } as const;

/** Who works in a session: one at a time. Whoever is there for a moment only is waited for, by all of these. */
export interface SessionLocks {
  /**
   * Exclusive, and renewed until it is disposed of; `lost` says that somebody took it away. The same run gets it again,
   * after its process died. Throws `conflict` saying who holds it, since when and how to unlock.
   */
  lock(id: string, run: string): Promise<HeldLease>;
  /** For a look at the session's files; those of this process share it. Throws `conflict`. */
  look(id: string): Promise<AsyncDisposable>;
  /** For a change or a copy of the session's files that is no run's. Exclusive. Throws `conflict`. */
  edit(id: string): Promise<AsyncDisposable>;
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
  /** Until `attempt` gives something; throws `conflict` once somebody is there who stays. */
  const onceFree = async <Result>(id: string, attempt: () => Promise<Result | null>): Promise<Result> => {
    const deadline = performance.now() + BRIEF_WAIT_MS_MAX;
    for (;;) {
      const result = await attempt();
      if (result !== null) return result;
      const held = await lockOf(id);
      if (!isBrief(held) || performance.now() >= deadline) throw lockedBy(id, held);
      await delay(BRIEF_POLL_MS);
    }
  };
  const untilFree = async (id: string) =>
    await onceFree(id, async () => {
      const held = await lockOf(id);
      return held === null || held.stale ? { held } : null;
    });
  const lock = async (id: string, run: string): Promise<HeldLease> => {
    await get(id);
    const gone = (other: string) => {
      const parsed = parseOwner(other);
      return parsed.run === run || (parsed.host === identity.host && !options.alive(parsed));
    };
    const held = await onceFree(id, async () => {
      const owner = JSON.stringify({ run, ...identity, since: now().toISOString() } satisfies LockOwner);
      return await holdLease(log, stream(id), { owner, ttlMs: LOCK_TTL_MS, ownerGone: gone });
    });
    await update(id, { lastUsedAt: now().toISOString() });
    return held;
  };
  /** A name of its own each time: nobody else of this process is the same holder. */
  const lockBriefly = (id: string, kind: keyof typeof brief) => lock(id, `${brief[kind]}${identity.pid}_${randomLetters(6)}`);
  const looks = createSharedHolds((id) => lockBriefly(id, "look"), { openMs: SHARED_MS_MAX, pauseMs: 2 * BRIEF_POLL_MS });
  return {
    lockOf,
    lock,
    look: (id) => looks.hold(id),
    edit: (id) => lockBriefly(id, "edit"),
    async checkFree(id) {
      await untilFree(id);
    },
    async breakLock(id, { force }) {
      await get(id);
      const { held } = force ? { held: await lockOf(id) } : await untilFree(id);
      if (!held) return;
      const lease = await log.acquire(stream(id), { owner: "nobody", ttlMs: 1, ownerGone: () => true });
      if (!lease) return;
      await log.release(lease);
      await record(id, { type: "session.unlocked", data: { run: held.owner.run, forced: !held.stale } });
    },
  };
}

function isBrief(lock: SessionLock | null): boolean {
  // It was let go of just now.
  if (lock === null) return true;
  return Object.values(brief).some((prefix) => lock.owner.run.startsWith(prefix));
}

function lockedBy(id: string, lock: SessionLock | null): CaissonError {
  if (!lock) return new CaissonError("conflict", `the session ${id} was locked just now`, { hint: "Try again." });
  const { owner } = lock;
  const where = `process ${owner.pid} on ${owner.host}`;
  return new CaissonError(
    "conflict",
    `the session ${id} is in use by ${owner.run} (${where})${owner.since === undefined ? "" : ` since ${owner.since}`}`,
    {
      hint: `${isBrief(lock) ? "Try again soon" : `Wait for it, stop it with \`caisson stop ${owner.run}\``}, or, if it is dead, \`caisson session unlock --force ${id}\`.`,
      details: { owner },
    },
  );
}

function parseOwner(text: string): LockOwner {
  const parsed = LockOwner.safeParse(jsonOrNull(text));
  return parsed.success ? parsed.data : { run: text, pid: 0, host: "", startTicks: 0, bootId: "" };
}
