import { SandboxId } from "../../contract/ids.ts";
import { isOrphan, type SandboxRecord } from "../../sandbox/store.ts";
import { cgroupFolders, cgroupNames, emptyCgroups, removeCgroups, removeEmptyGroups } from "./cgroups/cgroup.ts";
import { type OciDetails, OciDetails as OciDetailsSchema } from "./details.ts";
import { endSandbox, endUnrecorded } from "./end-sandbox.ts";
import { removeFiles } from "./launch/launcher.ts";
import { sweepLayers } from "./layers/frozen-layers.ts";
import { isReferenced } from "./layers/points.ts";
import { isBuiltOn, listSnapshots, removeRemains, removeSnapshotFiles } from "./layers/snapshot-store.ts";
import type { OciContext } from "./oci-context.ts";
import { createTemplateCache } from "./template/template-cache.ts";

/** Removes what dead creators left, and finishes what they started. Returns the removed sandboxes. */
export async function sweepSandboxes(oci: OciContext): Promise<SandboxId[]> {
  const removed: SandboxId[] = [];
  // Lists groups before records: a group is only created after its record was written.
  const groups = groupNames(oci);
  const { records, damaged } = await oci.store.list();
  const known = new Set([...records, ...damaged].map(({ id }) => id));
  for (const record of records) {
    if (record.runtime !== "oci" || !isLeftBehind(oci, record)) continue;
    const details = knownDetails(record);
    if (details !== null) await endSandbox(oci, record, details);
    else {
      await endUnrecorded(oci, record.id);
      await oci.store.remove(record.id);
    }
    removed.push(record.id);
  }
  for (const id of groups.filter((name) => !known.has(name))) {
    const folders = cgroupFolders(oci.cgroups().parents, oci.cgroupName, id);
    await emptyCgroups(folders);
    await removeCgroups(folders);
  }
  removeEmptyGroups(oci.cgroups().parents, oci.cgroupName);
  await sweepSnapshots(oci);
  await sweepLayers(oci, isReferenced);
  await createTemplateCache({ stateDir: oci.context.stateDir, remove: (tree) => removeFiles(oci, [tree]) }).sweep();
  return removed;
}

/** Whether a sandbox is unusable: its creator died, or it died itself and is not kept. */
function isLeftBehind(oci: OciContext, record: SandboxRecord): boolean {
  const isHolderDead = record.owner !== null && !oci.store.isHolderAlive(record.owner);
  if (isOrphan(record)) return true;
  if (record.state === "creating" || record.state === "completing" || record.state === "completed" || record.state === "failed")
    return isHolderDead;
  return false;
}

/**
 * Returns null for details that are damaged or of another version. They must not keep other sandboxes from being swept.
 */
function knownDetails(record: SandboxRecord): OciDetails | null {
  const parsed = OciDetailsSchema.safeParse(record.details);
  return parsed.success ? parsed.data : null;
}

function groupNames(oci: OciContext): SandboxId[] {
  return cgroupNames(oci.cgroups().parents, oci.cgroupName).filter((name) => SandboxId.safeParse(name).success);
}

async function sweepSnapshots(oci: OciContext): Promise<void> {
  const { snapshots, remains } = await listSnapshots(oci);
  for (const { id, hiddenFor } of snapshots) {
    if (hiddenFor !== null && !oci.store.isHolderAlive(hiddenFor) && !(await isBuiltOn(oci, id))) await removeSnapshotFiles(oci, id);
  }
  await removeRemains(oci, remains);
}
