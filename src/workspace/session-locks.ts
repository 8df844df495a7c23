import { setTimeout as delay } from "node:timers/promises";
import { CaissonError } from "../contract/error/error.ts";
import type { HostProcess, ProcessIdentity } from "../contract/process-identity.ts";
import { LockHolder, type Session, type SessionLock } from "../contract/session/session.ts";
import type { NewSessionEvent } from "../contract/session/session-event.ts";
import { jsonOrNull } from "../lib/failures.ts";
import { randomLetters } from "../lib/new-id.ts";
import { type HeldLease, holdLease } from "../log/hold-lease.ts";
import type { Log } from "../log/log.ts";
import { createSharedHolds } from "./shared-holds.ts";

/** A lock expires after this time. Its holder renews it while it works. */
export const LOCK_TTL_MS = 60 * 60_000;

/** Readers and manual edits finish soon, so others wait for them this long. */
const BRIEF_WAIT_MS_MAX = 30_000;
const BRIEF_POLL_MS = 10;
/** Readers may share a lock for this long, so that continuous reading does not starve others. */
const SHARED_MS_MAX = 2_000;
const brief = { look: "view_", edit: "edit_" } as const;

/**
 * Locks that let one holder at a time work in a session. Callers wait for readers and manual edits, but not for a run.
 */
export interface SessionLocks {
  /**
   * Takes an exclusive lock and renews it until disposal; `lost` fires if it was taken away. If the holder's process
   * died, the same run gets it again. Throws `conflict` naming the holder, the time and how to unlock.
   */
  lock(id: string, run: string): Promise<HeldLease>;
  /** Takes a lock for reading the session's files, which readers in this process share. Throws `conflict`. */
  look(id: string): Promise<AsyncDisposable>;
  /** Takes an exclusive lock for changing or copying the session's files outside a run. Throws `conflict`. */
  edit(id: string): Promise<AsyncDisposable>;
  lockOf(id: string): Promise<SessionLock | null>;
  /** Throws the error that `lock` would throw now. */
  checkFree(id: string): Promise<void>;
  /**
   * Takes a lock away from its holder; with `force` even from a holder that may still be working. Throws `conflict`,
   * `not_found`.
   */
  breakLock(id: string, options: { force: boolean }): Promise<void>;
}

export function createSessionLocks(options: {
  log: Log;
  identity: HostProcess;
  alive: (holder: ProcessIdentity) => boolean;
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
    const holder = parseHolder(held.holder);
    return {
      owner: holder,
      epoch: held.epoch,
      expiresAtMs: held.expiresAtMs,
      stale: holder.host === identity.host && !options.alive(holder),
    };
  };
  /** Repeats `attempt` until it returns a result. Throws `conflict` if a long-term holder has the lock. */
  const onceFree = async <Result>(id: string, attempt: () => Promise<Result | null>): Promise<Result> => {
    const deadline = performance.now() + BRIEF_WAIT_MS_MAX;
    for (;;) {
      const result = await attempt();
      if (result !== null) return result;
      const held = await lockOf(id);
      if (!isBrief(held) || performance.now() >= deadline) throw lockedError(id, held);
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
    const mayTakeFrom = (other: string) => {
      const parsed = parseHolder(other);
      return parsed.run === run || (parsed.host === identity.host && !options.alive(parsed));
    };
    const held = await onceFree(id, async () => {
      const holder = JSON.stringify({ run, ...identity, since: now().toISOString() } satisfies LockHolder);
      return await holdLease(log, stream(id), { holder, ttlMs: LOCK_TTL_MS, holderGone: mayTakeFrom });
    });
    await update(id, { lastUsedAt: now().toISOString() });
    return held;
  };
  /** Uses a unique name each time, so that two holders in this process never look the same. */
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
      const lease = await log.acquire(stream(id), { holder: "unlock", ttlMs: 1, holderGone: () => true });
      if (!lease) return;
      await log.release(lease);
      await record(id, { type: "session.unlocked", data: { run: held.owner.run, forced: !held.stale } });
    },
  };
}

function isBrief(lock: SessionLock | null): boolean {
  // The holder has just released it.
  if (lock === null) return true;
  return Object.values(brief).some((prefix) => lock.owner.run.startsWith(prefix));
}

function lockedError(id: string, lock: SessionLock | null): CaissonError {
  if (!lock) return new CaissonError("conflict", `the session ${id} was locked a moment ago`, { hint: "Try again." });
  const { owner: holder } = lock;
  const where = `process ${holder.pid} on ${holder.host}`;
  return new CaissonError(
    "conflict",
    `the session ${id} is in use by ${holder.run} (${where})${holder.since === undefined ? "" : ` since ${holder.since}`}`,
    {
      hint: `${isBrief(lock) ? "Try again soon" : `Wait for it, stop it with \`caisson stop ${holder.run}\``}, or if it is dead, run \`caisson session unlock --force ${id}\`.`,
      details: { owner: holder },
    },
  );
}

function parseHolder(text: string): LockHolder {
  const parsed = LockHolder.safeParse(jsonOrNull(text));
  return parsed.success ? parsed.data : { run: text, pid: 0, host: "", startTicks: 0, bootId: "" };
}
