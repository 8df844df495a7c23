import { CaissonError } from "../../contract/error.ts";
import { type RunFacts, waitsForResume } from "../../contract/run-facts.ts";
import type { QueuedFor } from "../../contract/run-queue.ts";
import type { Log } from "../../log/log.ts";
import { type HeadOfRun, runStream } from "../runs/head-of-run.ts";

/** How long a process in the background may take to become a run's owner. */
const DETACHED_START_MS_MAX = 30_000;

export interface DriverLook {
  log: Log;
  /** Whether the process that a lease names is known to be gone. */
  ownerGone: (owner: string) => boolean;
  /** Whether it is another process of this machine, whose death would be seen. */
  isNeighbour: (owner: string) => boolean;
}

/**
 * Whether a station may go on with a run by itself: nobody drives it, and a station or a process in the background did,
 * or was to. One that somebody drove at a terminal, or in a program, and one that was paused, is theirs to go on with;
 * unless it was told to stop, which is all that is left to do then.
 */
export async function mayAdopt({ facts, at, damage }: HeadOfRun, look: DriverLook & { nowMs: number }): Promise<boolean> {
  const { status, parent, driver, stopRequested } = facts;
  if (status === "ended" || parent !== null || damage !== null) return false;
  if (stopRequested === null && (driver === "caller" || facts.paused?.why === "user")) return false;
  if ((await drivenBy(facts.run, look)) !== null) return false;
  return driver !== "detached" || status !== "created" || look.nowMs - Date.parse(at) > DETACHED_START_MS_MAX;
}

/**
 * Its driver, if that lives, as far as anybody can tell: one on this machine whose lease ran out is waited for as long
 * as its process is there.
 */
export async function drivenBy(run: string, { log, ownerGone, isNeighbour }: DriverLook): Promise<string | null> {
  const last = await log.lastLease(runStream(run));
  if (last === null || ownerGone(last.owner)) return null;
  return isNeighbour(last.owner) || (await log.holder(runStream(run))) !== null ? last.owner : null;
}

export function isDriven(run: string, owner: string): CaissonError {
  return new CaissonError("conflict", `the run ${run} is driven by another process (${owner})`, {
    hint: `Watch it with \`caisson attach ${run}\`.`,
    details: { owner },
  });
}

export function isSubRun({ run, parent }: RunFacts): CaissonError {
  return new CaissonError("invalid", `the run ${run} is part of ${parent?.run}, and goes on with it`, {
    hint: `Resume that one: caisson resume ${parent?.run}`,
  });
}

/** Of one that is to go on: somebody has to say so where it was paused until somebody does. */
export function goesOn(facts: RunFacts, by: string) {
  return waitsForResume(facts) ? [{ type: "run.continued" as const, data: { by } }] : [];
}

/** What is said of one that is to wait for its turn. */
export function toQueue(facts: RunFacts, { by, why, startAt = null }: { by: string; why: QueuedFor; startAt?: string | null }) {
  const { priority, queued } = facts;
  const waits = { type: "run.queued" as const, data: { by, for: why, priority, startAt } };
  return [...goesOn(facts, by), ...(queued === null ? [waits] : [])];
}
