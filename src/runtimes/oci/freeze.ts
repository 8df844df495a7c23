import { CaissonError } from "../../contract/error.ts";
import type { SandboxId } from "../../contract/ids.ts";
import type { ProcessIdentity } from "../../contract/process-identity.ts";
import type { GuestCondition } from "../../sandbox/guest/waits.ts";
import { conditionOfProcess } from "../../sandbox/process-identity.ts";
import type { SandboxRecord } from "../../sandbox/store.ts";
import { canFreeze, freezeWork, isFrozen } from "./cgroups/cgroup.ts";
import { detailsOf, type OciDetails } from "./details.ts";
import type { OciContext } from "./oci-context.ts";

/**
 * Does something while nothing moves in a sandbox. Who holds it still is written down first, so that the death of this
 * process leaves it frozen only until somebody looks. Throws `busy` while another does the same.
 */
export async function whileFrozen<T>(oci: OciContext, id: SandboxId, work: () => Promise<T>): Promise<T> {
  const record = await oci.store.read(id);
  const { cgroups } = detailsOf(record);
  if (!canFreeze(cgroups) || record.state === "paused") return work();
  refuseWhileHeld(oci, record);
  holdBy(oci, record, oci.store.ownerOf());
  try {
    await freezeWork(cgroups, "frozen");
    return await work();
  } finally {
    await freezeWork(cgroups, "thawed");
    const current = await oci.store.read(id).catch(() => null);
    if (current !== null) holdBy(oci, current, null);
  }
}

/** Throws `busy` when a living process copies the sandbox's files. */
export function refuseWhileHeld(oci: OciContext, record: SandboxRecord): void {
  const { frozenBy } = detailsOf(record);
  if (!oci.store.ownerAlive(frozenBy)) return;
  throw new CaissonError("busy", `process ${frozenBy?.pid} is copying the files of sandbox ${record.id}`, {
    hint: "Try again when its snapshot or fork is done.",
  });
}

/**
 * Lets go of what a process that died held still. A sandbox that was paused besides stays paused. Gives the record as
 * it is then.
 */
export async function thawAfterDeath(oci: OciContext, record: SandboxRecord): Promise<SandboxRecord> {
  const { frozenBy, cgroups } = detailsOf(record);
  if (frozenBy === null || oci.store.ownerAlive(frozenBy)) return record;
  if (record.state !== "paused") await freezeWork(cgroups, "thawed");
  return holdBy(oci, await oci.store.read(record.id), null);
}

/** What the host sees of a guest without asking it. A sandbox whose files are being copied goes on by itself. */
export async function conditionOf(oci: OciContext, id: SandboxId, { guest, cgroups }: OciDetails): Promise<GuestCondition> {
  const condition = guest === null ? "unknown" : conditionOfProcess(guest);
  if (condition === "dead" || condition === "stopped" || !isFrozen(cgroups)) return condition;
  const { frozenBy } = detailsOf(await oci.store.read(id));
  return oci.store.ownerAlive(frozenBy) ? condition : "frozen";
}

function holdBy(oci: OciContext, record: SandboxRecord, frozenBy: ProcessIdentity | null): SandboxRecord {
  const held: SandboxRecord = { ...record, details: { ...detailsOf(record), frozenBy } };
  oci.store.note(held);
  return held;
}
