import { CaissonError } from "../../contract/error/error.ts";
import { isAtFork, type RunFacts, waitsForResume } from "../../contract/run/run-facts.ts";
import type { QueuedFor } from "../../contract/run/run-queue.ts";
import type { Log } from "../../log/log.ts";
import type { HeadOfRun } from "../vocabulary/head-of-run.ts";
import { runStream } from "../vocabulary/station-names.ts";

/** How long a background process may take to become a run's driver. */
const DETACHED_START_MS_MAX = 30_000;

export interface DriverLook {
  log: Log;
  /** Returns whether the process that a lease names is known to be dead. */
  holderGone: (holder: string) => boolean;
  /** Returns whether the holder is another process on this machine, so that we would notice its death. */
  isNeighbour: (holder: string) => boolean;
}

/**
 * Returns whether a station may continue a run without a request: the run has no driver, and its last or intended
 * driver was a station or a background process. Paused runs, and runs that a user drove in a terminal or a program, are
 * left to the user, unless a stop was requested and they only need to be ended.
 */
export async function mayAdopt({ facts, at, damage }: HeadOfRun, look: DriverLook & { nowMs: number }): Promise<boolean> {
  const { status, parent, driver, stopRequested } = facts;
  if (status === "ended" || parent !== null || damage !== null || facts.rewinding !== null) return false;
  if (stopRequested === null && (driver === "caller" || facts.paused?.why === "user" || isAtFork(facts))) return false;
  if ((await drivenBy(facts.run, look)) !== null) return false;
  return driver !== "detached" || status !== "created" || look.nowMs - Date.parse(at) > DETACHED_START_MS_MAX;
}

/**
 * Returns the run's driver if it is alive, as far as we can tell. If a driver on this machine has an expired lease, it
 * counts as alive as long as its process exists.
 */
export async function drivenBy(run: string, { log, holderGone, isNeighbour }: DriverLook): Promise<string | null> {
  const last = await log.lastLease(runStream(run));
  if (last === null || holderGone(last.holder)) return null;
  return isNeighbour(last.holder) || (await log.holder(runStream(run))) !== null ? last.holder : null;
}

export function drivenElsewhere(run: string, owner: string): CaissonError {
  return new CaissonError("conflict", `the run ${run} is driven by another process (${owner})`, {
    hint: `Watch it with \`caisson attach ${run}\`.`,
    details: { owner },
  });
}

export function subRunError({ run, parent }: RunFacts): CaissonError {
  return new CaissonError("invalid", `the run ${run} is part of ${parent?.run} and continues with it`, {
    hint: `Resume the parent: caisson resume ${parent?.run}`,
  });
}

/** Returns the events that let a run continue. A run that is paused until a user resumes it needs one. */
export function resumeEvents(facts: RunFacts, by: string) {
  return waitsForResume(facts) ? [{ type: "run.continued" as const, data: { by } }] : [];
}

/** Returns the events that put a run into the queue. */
export function toQueue(facts: RunFacts, { by, why, startAt = null }: { by: string; why: QueuedFor; startAt?: string | null }) {
  const { priority, queued } = facts;
  const waits = { type: "run.queued" as const, data: { by, for: why, priority, startAt } };
  return [...resumeEvents(facts, by), ...(queued === null ? [waits] : [])];
}
