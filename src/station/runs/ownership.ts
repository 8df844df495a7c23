import { CaissonError } from "../../contract/error/error.ts";
import { type HeldLease, holdLease, LEASE_TTL_MS } from "../../log/hold-lease.ts";
import type { Log } from "../../log/log.ts";
import { runStream } from "../vocabulary/station-names.ts";

/**
 * Acquires the run's lease and renews it until disposed of. Throws `conflict` with `details.owner` if another process
 * holds it.
 */
export async function acquireRun(
  run: string,
  options: { log: Log; holder: string; holderGone: (holder: string) => boolean },
): Promise<HeldLease> {
  const stream = runStream(run);
  const held = await holdLease(options.log, stream, { holder: options.holder, ttlMs: LEASE_TTL_MS, holderGone: options.holderGone });
  if (held) return held;
  const holder = (await options.log.holder(stream))?.holder ?? "unknown";
  throw new CaissonError("conflict", `the run ${run} is driven by another process (${holder})`, {
    hint: `Watch it with \`caisson attach ${run}\`.`,
    details: { owner: holder },
  });
}
