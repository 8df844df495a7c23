import { CaissonError } from "../../contract/error/error.ts";
import type { SandboxId } from "../../contract/ids.ts";
import type { ProcessIdentity } from "../../contract/process-identity.ts";
import { ignore } from "../../lib/failures.ts";
import type { GuestCondition } from "../../sandbox/guest/waits.ts";
import { conditionOfProcess } from "../../sandbox/process-identity.ts";
import type { SandboxRecord } from "../../sandbox/store.ts";
import { canFreeze, freezeWork, isFrozen } from "./cgroups/cgroup.ts";
import { detailsOf, type OciDetails } from "./details.ts";
import type { OciContext } from "./oci-context.ts";

/**
 * Runs `work` while the sandbox is frozen, if it can be. Records the freezing process first: if it dies, the sandbox
 * stays frozen only until another process uses it. Throws `busy` while another process does the same.
 */
export async function whileFrozen<T>(oci: OciContext, id: SandboxId, work: () => Promise<T>): Promise<T> {
  const record = await oci.store.read(id);
  const { cgroups } = detailsOf(record);
  const freezes = canFreeze(cgroups) && record.state !== "paused";
  refuseWhileHeld(oci, record);
  holdBy(oci, record, oci.store.thisProcess());
  try {
    if (freezes) await freezeWork(cgroups, "frozen");
    return await work();
  } finally {
    if (freezes) await freezeWork(cgroups, "thawed");
    const current = await ignore(oci.store.read(id), "the result of the work counts; a sweep reports a damaged record");
    if (current !== undefined) holdBy(oci, current, null);
  }
}

/** Throws `busy` while a living process copies the sandbox's files. */
export function refuseWhileHeld(oci: OciContext, record: SandboxRecord): void {
  const { frozenBy } = detailsOf(record);
  if (!oci.store.isHolderAlive(frozenBy)) return;
  throw new CaissonError("busy", `process ${frozenBy?.pid} is copying the files of sandbox ${record.id}`, {
    hint: "Try again when its snapshot or fork is done.",
  });
}

/** Thaws a sandbox whose freezing process died, unless the sandbox is also paused. Returns the resulting record. */
export async function thawAfterDeath(oci: OciContext, record: SandboxRecord): Promise<SandboxRecord> {
  const { frozenBy, cgroups } = detailsOf(record);
  if (frozenBy === null || oci.store.isHolderAlive(frozenBy)) return record;
  if (record.state !== "paused" && canFreeze(cgroups)) await freezeWork(cgroups, "thawed");
  return holdBy(oci, await oci.store.read(record.id), null);
}

/**
 * Returns the guest's condition as the host sees it, without asking the guest. A freeze for copying files does not
 * count: it ends without intervention.
 */
export async function conditionOf(oci: OciContext, id: SandboxId, { guest, cgroups, onDisk }: OciDetails): Promise<GuestCondition> {
  const condition = guest === null ? "unknown" : conditionOfProcess(guest);
  if (condition === "dead" && onDisk !== null) return "frozen";
  if (condition === "dead" || condition === "stopped" || !isFrozen(cgroups)) return condition;
  const { frozenBy } = detailsOf(await oci.store.read(id));
  return oci.store.isHolderAlive(frozenBy) ? condition : "frozen";
}

function holdBy(oci: OciContext, record: SandboxRecord, frozenBy: ProcessIdentity | null): SandboxRecord {
  const held: SandboxRecord = { ...record, details: { ...detailsOf(record), frozenBy } };
  oci.store.note(held);
  return held;
}
