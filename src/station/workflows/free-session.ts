import { setTimeout as delay } from "node:timers/promises";
import { CaissonError } from "../../contract/error.ts";
import type { SessionLock } from "../../contract/session.ts";

const POLL_MS = 50;
/** Whoever only looks at files is done soon; so is a run that has said its last word and puts its sandbox away. */
const FREE_WAIT_MS_MAX = 60_000;

/** Does what needs a session for itself; somebody who only looks at it is waited for. */
export async function onceFree<Result>(work: () => Promise<Result>, signal: AbortSignal): Promise<Result> {
  const deadline = performance.now() + FREE_WAIT_MS_MAX;
  for (;;) {
    try {
      return await work();
    } catch (error) {
      if (!isSeen(error) || performance.now() >= deadline) throw error;
      await delay(POLL_MS, undefined, { signal });
    }
  }
}

/** A run is over before it has left its session: whoever works there next waits for that. */
export async function untilLeft(run: string, lockOf: () => Promise<SessionLock | null>, signal: AbortSignal): Promise<void> {
  const deadline = performance.now() + FREE_WAIT_MS_MAX;
  while (performance.now() < deadline) {
    const lock = await lockOf();
    if (lock === null || lock.stale || lock.owner.run !== run) return;
    await delay(POLL_MS, undefined, { signal });
  }
}

function isSeen(error: unknown): boolean {
  if (!(error instanceof CaissonError) || error.code !== "conflict") return false;
  const { run } = (error.details?.owner ?? {}) as { run?: unknown };
  return typeof run === "string" && /^(?:view|undo)_/.test(run);
}
