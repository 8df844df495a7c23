import { setTimeout as delay } from "node:timers/promises";
import type { SessionLock } from "../../contract/session.ts";

const POLL_MS = 50;
/** A run that has said its last word puts its sandbox away soon. */
const LEAVE_WAIT_MS_MAX = 60_000;

/** A run is over before it has left its session: whoever works there next waits for that. */
export async function untilLeft(run: string, lockOf: () => Promise<SessionLock | null>, signal: AbortSignal): Promise<void> {
  const deadline = performance.now() + LEAVE_WAIT_MS_MAX;
  while (performance.now() < deadline) {
    const lock = await lockOf();
    if (lock === null || lock.stale || lock.owner.run !== run) return;
    await delay(POLL_MS, undefined, { signal });
  }
}
