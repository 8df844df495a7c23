import { join } from "node:path";
import { CaissonError } from "../../contract/error/error.ts";
import type { SandboxId } from "../../contract/ids.ts";
import type { SandboxRecord } from "../../sandbox/store.ts";
import { cgroupFolders, removeEmptyGroups } from "./cgroups/cgroup.ts";
import { detailsOf, type OciDetails } from "./details.ts";
import { endWork } from "./end-sandbox.ts";
import { SOCKET_NAME } from "./launch/launch-plan.ts";
import { refuseOnDisk } from "./memory/memory-image.ts";
import type { OciContext } from "./oci-context.ts";
import { bringUp } from "./start-sandbox.ts";

/**
 * Ends all processes of a sandbox and starts a guest again over its own files: id, name, limits and layers do not
 * change. The record stays `running`, so that after a crash halfway the next process finds a dead sandbox with its
 * files, and no sweep mistakes it for an unfinished create. Throws `unsupported` if the files were lost with the guest.
 * Throws the error of a failed start, which leaves the files unchanged.
 */
export async function restartSandbox(
  oci: OciContext,
  record: SandboxRecord,
  { beforeEnd }: { beforeEnd?: () => Promise<void> } = {},
): Promise<void> {
  const details = detailsOf(record);
  if (details.disk === "memory") {
    throw new CaissonError("unsupported", `the files of sandbox ${record.id} are in memory, and are lost with its guest`, {
      hint: "Create it again without a disk limit, so that its files survive a restart.",
    });
  }
  refuseOnDisk(record.id, details);
  await beforeEnd?.();
  await endWork(oci, record.id, details);
  await oci.launch({ what: "remove", plan: [["remove", join(oci.store.dir(record.id), SOCKET_NAME)]] });
  const releaseMigration = oci.migration.hold(oci.cgroups());
  try {
    const cgroups = cgroupFolders(oci.cgroups().parents, oci.cgroupName, record.id);
    const fresh: OciDetails = { ...details, cgroups, guest: null, frozenBy: null };
    const start = { record: { ...record, state: "running" as const, details: fresh }, details: fresh };
    const { connection } = await bringUp(oci, { ...start, options: { config: record.spec, again: true } });
    connection.close();
  } catch (error) {
    removeEmptyGroups(oci.cgroups().parents, oci.cgroupName);
    throw error;
  } finally {
    releaseMigration();
  }
}

/** Ends all processes of a sandbox. It is dead afterwards, but its files remain. */
export async function killSandbox(oci: OciContext, id: SandboxId): Promise<void> {
  await endWork(oci, id, detailsOf(await oci.store.read(id)));
}
