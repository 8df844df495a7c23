import { CaissonError } from "../../contract/error.ts";
import type { HostProcess, ProcessIdentity } from "../../contract/process-identity.ts";
import { type HeldLease, holdLease, LEASE_TTL_MS } from "../../log/hold-lease.ts";
import type { Log } from "../../log/log.ts";
import { runStream } from "./head-of-run.ts";

/**
 * Becomes the run's owner, and stays it while this is held. Throws `conflict` with `details.owner` when another process
 * has it.
 */
export async function acquireRun(
  run: string,
  options: { log: Log; owner: string; ownerGone: (owner: string) => boolean },
): Promise<HeldLease> {
  const stream = runStream(run);
  const held = await holdLease(options.log, stream, { owner: options.owner, ttlMs: LEASE_TTL_MS, ownerGone: options.ownerGone });
  if (held) return held;
  const owner = (await options.log.holder(stream))?.owner ?? "unknown";
  throw new CaissonError("conflict", `the run ${run} is driven by another process (${owner})`, {
    hint: `Watch it with \`caisson attach ${run}\`.`,
    details: { owner },
  });
}

/** Whether the process that a lease names can never come back. Of another machine's that cannot be seen from here. */
export function isGone(options: { identity: HostProcess; alive: (owner: ProcessIdentity) => boolean }, owner: string): boolean {
  try {
    const other = JSON.parse(owner) as HostProcess;
    return other.host === options.identity.host && !options.alive(other);
  } catch {
    return false;
  }
}
