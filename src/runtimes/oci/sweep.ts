import { SandboxId } from "../../contract/ids.ts";
import { isOrphan, type SandboxRecord } from "../../sandbox/store.ts";
import { cgroupFolders, cgroupNames, emptyCgroups, removeCgroups, removeEmptyGroups } from "./cgroups/cgroup.ts";
import { type OciDetails, OciDetails as OciDetailsSchema } from "./details.ts";
import { endSandbox, endUnrecorded } from "./end-sandbox.ts";
import type { House } from "./house.ts";
import { removeFiles } from "./launch/remove-files.ts";
import { isBuiltOn, listSnapshots, removeSnapshotFiles } from "./layers/snapshot-store.ts";
import { createTemplateCache } from "./template/template-cache.ts";

/** Removes what dead creators left, and finishes what they had begun. Returns the sandboxes it removed. */
export async function sweepHouse(house: House): Promise<SandboxId[]> {
  const removed: SandboxId[] = [];
  // Groups before records: a group is only ever made after its record was written.
  const groups = groupNames(house);
  const { records, damaged } = await house.store.list();
  const known = new Set([...records, ...damaged].map(({ id }) => id));
  for (const record of records) {
    if (record.runtime !== "oci" || !isLeftBehind(house, record)) continue;
    const details = knownDetails(record);
    if (details !== null) await endSandbox(house, record, details);
    else {
      await endUnrecorded(house, record.id);
      await house.store.remove(record.id);
    }
    removed.push(record.id);
  }
  for (const id of groups.filter((name) => !known.has(name))) {
    const folders = cgroupFolders(house.cgroups().parents, house.cgroupName, id);
    await emptyCgroups(folders);
    await removeCgroups(folders);
  }
  removeEmptyGroups(house.cgroups().parents, house.cgroupName);
  await sweepSnapshots(house);
  await createTemplateCache({ stateDir: house.context.stateDir, remove: (tree) => removeFiles(house, [tree]) }).sweep();
  return removed;
}

/** A sandbox that nobody can use any more: its maker died, or it did itself and is not kept for anyone. */
function isLeftBehind(house: House, record: SandboxRecord): boolean {
  const ownerDead = record.owner !== null && !house.store.ownerAlive(record.owner);
  if (isOrphan(record)) return true;
  if (record.state === "creating" || record.state === "completing" || record.state === "completed" || record.state === "failed")
    return ownerDead;
  return false;
}

/** Null for details that are damaged, or of another version; they must not keep others from being swept. */
function knownDetails(record: SandboxRecord): OciDetails | null {
  const parsed = OciDetailsSchema.safeParse(record.details);
  return parsed.success ? parsed.data : null;
}

function groupNames(house: House): SandboxId[] {
  return cgroupNames(house.cgroups().parents, house.cgroupName).filter((name) => SandboxId.safeParse(name).success);
}

async function sweepSnapshots(house: House): Promise<void> {
  const { snapshots, remains } = await listSnapshots(house);
  for (const { id, hiddenFor } of snapshots) {
    if (hiddenFor !== null && !house.store.ownerAlive(hiddenFor) && !(await isBuiltOn(house, id))) await removeSnapshotFiles(house, id);
  }
  await removeFiles(house, remains);
}
