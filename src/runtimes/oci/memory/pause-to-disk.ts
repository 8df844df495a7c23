import { rm } from "node:fs/promises";
import { join } from "node:path";
import { CaissonError } from "../../../contract/error/error.ts";
import type { SandboxId } from "../../../contract/ids.ts";
import { isRunning } from "../../../sandbox/process-identity.ts";
import type { SandboxRecord } from "../../../sandbox/store.ts";
import { cgroupFolders, removeEmptyGroups } from "../cgroups/cgroup.ts";
import { detailsOf, type OciDetails } from "../details.ts";
import { endWork } from "../end-sandbox.ts";
import { SOCKET_NAME } from "../launch/launch-plan.ts";
import { removeFiles } from "../launch/launcher.ts";
import type { OciContext } from "../oci-context.ts";
import { bringUp } from "../start-sandbox.ts";
import { continueProcesses, dumpMemory } from "./memory-image.ts";
import { MEMORY_NAME } from "./snapshot-memory.ts";

/**
 * Stores the processes of a sandbox in its folder and ends them. Once the record names the image, the sandbox is
 * paused, whatever happens to this process: until the processes have ended, `wake` finds them alive and needs no image.
 */
export async function pauseToDisk(oci: OciContext, id: SandboxId): Promise<void> {
  const record = await oci.store.read(id);
  const details = detailsOf(record);
  refuse(record, details);
  const dir = join(oci.store.dir(id), MEMORY_NAME);
  await removeFiles(oci, [dir]);
  try {
    const onDisk = await dumpMemory(oci, details, dir);
    await oci.store.write({ ...record, state: "paused", details: { ...details, onDisk } });
  } catch (error) {
    continueProcesses(details);
    await removeFiles(oci, [dir]);
    throw error;
  }
  await endWork(oci, id, details);
}

function refuse({ id, state }: SandboxRecord, { disk }: OciDetails): void {
  if (state === "paused") throw new CaissonError("conflict", `sandbox ${id} is already paused`, { hint: "Resume it first." });
  if (disk === "memory") {
    throw new CaissonError("unsupported", `the files of sandbox ${id} are in memory, and would be lost with its processes`, {
      hint: "Create it without a disk limit, or pause it without --to-disk.",
    });
  }
}

/** Restores the processes of a sandbox that is paused on the disk; does nothing for any other. */
export async function wake(oci: OciContext, id: SandboxId): Promise<void> {
  const record = await oci.store.read(id);
  const details = detailsOf(record);
  const { onDisk } = details;
  if (onDisk === null) return;
  if (details.guest !== null && isRunning(details.guest)) {
    // The process that paused it died before it ended the processes, and they may have changed files since.
    continueProcesses(details);
    await oci.store.write({ ...record, state: "running", details: { ...details, onDisk: null } });
  } else {
    await restore(oci, record, details);
  }
  await removeFiles(oci, [onDisk.dir]);
}

async function restore(oci: OciContext, record: SandboxRecord, details: OciDetails): Promise<void> {
  await endWork(oci, record.id, details);
  await rm(join(oci.store.dir(record.id), SOCKET_NAME), { force: true });
  const releaseMigration = oci.migration.hold(oci.cgroups());
  try {
    const cgroups = cgroupFolders(oci.cgroups().parents, oci.cgroupName, record.id);
    const fresh: OciDetails = { ...details, cgroups, guest: null, frozenBy: null, onDisk: null };
    const memory = details.onDisk ?? undefined;
    const { connection } = await bringUp(oci, { record, details: fresh, options: { config: record.spec, again: true, memory } });
    connection.close();
  } catch (error) {
    // The record still names the image: the next attempt finds it.
    await endWork(oci, record.id, { ...details, guest: null, cgroups: cgroupFolders(oci.cgroups().parents, oci.cgroupName, record.id) });
    removeEmptyGroups(oci.cgroups().parents, oci.cgroupName);
    throw error;
  } finally {
    releaseMigration();
  }
}
