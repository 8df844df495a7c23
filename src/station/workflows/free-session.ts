import { setTimeout as delay } from "node:timers/promises";
import type { SessionLock } from "../../contract/session/session.ts";

const POLL_MS = 50;
/** How long an ended run may take to release its session. */
const LEAVE_WAIT_MS_MAX = 60_000;

/** Waits until an ended run has left its session, so that the next run can use it. */
export async function untilLeft(run: string, lockOf: () => Promise<SessionLock | null>, signal: AbortSignal): Promise<void> {
  const deadline = performance.now() + LEAVE_WAIT_MS_MAX;
  while (performance.now() < deadline) {
    const lock = await lockOf();
    if (lock === null || lock.stale || lock.owner.run !== run) return;
    await delay(POLL_MS, undefined, { signal });
  }
}
