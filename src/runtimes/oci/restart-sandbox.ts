import { join } from "node:path";
import { CaissonError } from "../../contract/error.ts";
import type { SandboxId } from "../../contract/ids.ts";
import type { SandboxRecord } from "../../sandbox/store.ts";
import { cgroupFolders, removeEmptyGroups } from "./cgroups/cgroup.ts";
import { detailsOf, type OciDetails } from "./details.ts";
import { endWork } from "./end-sandbox.ts";
import type { OciContext } from "./oci-context.ts";
import { bringUp, SOCKET_NAME } from "./start-sandbox.ts";

/**
 * Ends what runs in a sandbox, and starts a guest again over its own files: id, name, limits and layers stay as they
 * are. The record says `running` throughout, so that whoever comes after a crash in the middle finds a sandbox that
 * died, with its files, and no sweep takes it for a create that was never finished. Throws `unsupported` for one whose
 * files went with its guest, and what starting throws; the files are left alone then.
 */
export async function restartSandbox(
  oci: OciContext,
  record: SandboxRecord,
  { beforeEnd }: { beforeEnd?: () => Promise<void> } = {},
): Promise<void> {
  const details = detailsOf(record);
  if (details.disk === "memory") {
    throw new CaissonError("unsupported", `the files of sandbox ${record.id} are in memory, and go with its guest`, {
      hint: "Make it again; without a limit on its disk its files stay.",
    });
  }
  await beforeEnd?.();
  await endWork(oci, record.id, details);
  await oci.launch({ what: "remove", plan: [["remove", join(oci.store.dir(record.id), SOCKET_NAME)]] });
  const releaseMigration = oci.migration.hold(oci.cgroups());
  try {
    const cgroups = cgroupFolders(oci.cgroups().parents, oci.cgroupName, record.id);
    const fresh: OciDetails = { ...details, cgroups, guest: null, frozenBy: null };
    const start = { record: { ...record, state: "running" as const, details: fresh }, details: fresh };
    const { connection } = await bringUp(oci, { ...start, options: { spec: record.spec, again: true } });
    connection.close();
  } catch (error) {
    removeEmptyGroups(oci.cgroups().parents, oci.cgroupName);
    throw error;
  } finally {
    releaseMigration();
  }
}

/** Ends everything that runs in a sandbox; it is dead then, and its files are there. */
export async function killSandbox(oci: OciContext, id: SandboxId): Promise<void> {
  await endWork(oci, id, detailsOf(await oci.store.read(id)));
}
