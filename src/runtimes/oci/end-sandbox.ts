import { readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { CaissonError } from "../../contract/error/error.ts";
import type { SandboxId } from "../../contract/ids.ts";
import { ifErrnoSync, isErrno, UNREACHABLE } from "../../lib/failures.ts";
import { isRunning, startedProcess } from "../../sandbox/process-identity.ts";
import type { SandboxRecord } from "../../sandbox/store.ts";
import { cgroupFolders, emptyCgroups, removeCgroups, removeEmptyGroups } from "./cgroups/cgroup.ts";
import type { OciDetails } from "./details.ts";
import { releaseRange } from "./identity/id-ranges.ts";
import { GUEST_PATH } from "./launch/bundle.ts";
import { removeFiles, removeFilesWhen } from "./launch/launcher.ts";
import { layerFolders } from "./layers/layers.ts";
import { releaseMachine } from "./layers/machine.ts";
import { releaseBase } from "./layers/sandbox-base.ts";
import { isBuiltOn, removeSnapshotFiles } from "./layers/snapshot-store.ts";
import type { OciContext } from "./oci-context.ts";

/** The file into which the launcher writes the guest's pid. */
const GUEST_PID_NAME = "guest.pid";
const DEATH_TIMEOUT_MS = 20_000;

/**
 * Ends a sandbox in any state and removes everything that belongs to it. The record goes last, so that after a crash
 * the next process finds what remains. Idempotent.
 */
export async function endSandbox(oci: OciContext, record: SandboxRecord, known: OciDetails): Promise<void> {
  const details = { ...known, guest: known.guest ?? writtenDown(oci.store.dir(record.id)) };
  noteEnding(oci, { ...record, state: "completing", owner: oci.store.thisProcess(), details });
  await endProcesses(oci, record.id, details);
  await releaseBase(oci, record, details);
  await releaseMachine(oci, oci.store.dir(record.id));
  await oci.store.remove(record.id);
  releaseRange(oci, details.firstId, oci.store.dir(record.id));
  // Another snapshot may be based on the fork's own, which then stays until a sweep finds it unused.
  if (details.ownSnapshot !== null && !(await isBuiltOn(oci, details.ownSnapshot))) await removeSnapshotFiles(oci, details.ownSnapshot);
}

/**
 * Records that the sandbox is ending. A full disk does not stop it, since ending a sandbox frees space: after a crash,
 * the next process finds the old record, which is enough to end the sandbox.
 */
function noteEnding(oci: OciContext, record: SandboxRecord): void {
  try {
    oci.store.note(record);
  } catch (error) {
    const code = error instanceof Error && "code" in error ? error.code : "";
    // `not_found`: another process is removing the sandbox and has already removed the record.
    if (code !== "ENOSPC" && code !== "EDQUOT" && code !== "no_space" && code !== "not_found") throw error;
  }
}

/**
 * Ends a sandbox that we know only by its id, using the guest pid that the launcher wrote and the groups that have the
 * id as their name. The folder stays.
 */
export async function endUnrecorded(oci: OciContext, id: SandboxId): Promise<void> {
  const cgroups = cgroupFolders(oci.cgroups().parents, oci.cgroupName, id);
  await endProcesses(oci, id, { guest: writtenDown(oci.store.dir(id)), cgroups });
}

/** Ends all processes of a sandbox, whether or not its guest answers. Its record and files stay. */
export async function endWork(oci: OciContext, id: SandboxId, known: OciDetails): Promise<void> {
  const ended = { ...known, guest: known.guest ?? writtenDown(oci.store.dir(id)) };
  await killGuest(ended.guest);
  await processesGone(oci, ended);
}

type Ended = Pick<OciDetails, "guest" | "cgroups">;

async function endProcesses(oci: OciContext, id: SandboxId, { guest, cgroups }: Ended): Promise<void> {
  await killGuest(guest);
  const paths = () => layerFolders(oci.store.dir(id));
  const ready = processesGone(oci, { guest, cgroups });
  if (paths().length > 0) return await removeFilesWhen(oci, { ready, paths });
  await ready;
  // Look again: the launcher may have created some before it was killed just now.
  await removeFiles(oci, paths());
}

async function processesGone(oci: OciContext, { guest, cgroups }: Ended): Promise<void> {
  await emptyCgroups(cgroups);
  await guestGone(guest);
  await removeCgroups(cgroups);
  removeEmptyGroups(oci.cgroups().parents, oci.cgroupName);
}

/**
 * Reads the guest pid, which the launcher writes before it releases the guest. The record follows later, or never if
 * its writer dies.
 */
function writtenDown(folder: string): OciDetails["guest"] {
  const codes = [...UNREACHABLE, "ESRCH"];
  const pid = ifErrnoSync(() => Number(readFileSync(join(folder, GUEST_PID_NAME), "latin1")), codes, 0);
  // The pid may belong to another process by now.
  return ifErrnoSync(() => (isGuest(pid) ? startedProcess(pid) : null), codes, null);
}

function isGuest(pid: number): boolean {
  return Number.isInteger(pid) && pid > 1 && readFileSync(`/proc/${pid}/cmdline`, "latin1").startsWith(`${GUEST_PATH}\0init\0`);
}

/** Killing process 1 of a pid namespace ends all other processes in it. */
async function killGuest(guest: OciDetails["guest"]): Promise<void> {
  if (guest === null || !isRunning(guest)) return;
  try {
    process.kill(guest.pid, "SIGKILL");
  } catch (error) {
    if (isErrno(error, "ESRCH")) return;
    throw new CaissonError("denied", `cannot end process ${guest.pid}`, {
      hint: "Remove the sandbox as root or as the user who created it.",
      cause: error,
    });
  }
}

async function guestGone(guest: OciDetails["guest"]): Promise<void> {
  const deadline = performance.now() + DEATH_TIMEOUT_MS;
  for (let waitMs = 1; guest !== null && isRunning(guest); waitMs = Math.min(waitMs + 1, 20)) {
    if (performance.now() > deadline) throw new CaissonError("timeout", `process ${guest.pid} was killed but still exists`);
    await delay(waitMs);
  }
}
