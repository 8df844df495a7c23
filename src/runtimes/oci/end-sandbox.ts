import { readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { CaissonError } from "../../contract/error.ts";
import type { SandboxId } from "../../contract/ids.ts";
import { isErrno } from "../../lib/is-errno.ts";
import { isRunning, startedProcess } from "../../sandbox/process-identity.ts";
import type { SandboxRecord } from "../../sandbox/store.ts";
import { cgroupFolders, emptyCgroups, removeCgroups, removeEmptyGroups } from "./cgroups/cgroup.ts";
import type { OciDetails } from "./details.ts";
import { releaseRange } from "./identity/id-ranges.ts";
import { GUEST_PATH } from "./launch/bundle.ts";
import { removeFiles, removeFilesWhen } from "./launch/launcher.ts";
import { layerFolders } from "./layers/layers.ts";
import { isBuiltOn, removeSnapshotFiles } from "./layers/snapshot-store.ts";
import type { OciContext } from "./oci-context.ts";

/** As the launcher calls it. */
const GUEST_PID_NAME = "guest.pid";
const DEATH_TIMEOUT_MS = 20_000;

/**
 * Ends a sandbox in any state and removes everything of it; resolves when nothing is left. The record goes last, so
 * that whoever comes after a crash finds what there was to do. Idempotent.
 */
export async function endSandbox(oci: OciContext, record: SandboxRecord, known: OciDetails): Promise<void> {
  const details = { ...known, guest: known.guest ?? writtenDown(oci.store.dir(record.id)) };
  noteEnding(oci, { ...record, state: "completing", owner: oci.store.ownerOf(), details });
  await endProcesses(oci, record.id, details);
  await oci.store.remove(record.id);
  releaseRange(oci, details.firstId, oci.store.dir(record.id));
  // A snapshot of the fork may be built on the fork's own; then it stays until a sweep finds it unused.
  if (details.ownSnapshot !== null && !(await isBuiltOn(oci, details.ownSnapshot))) await removeSnapshotFiles(oci, details.ownSnapshot);
}

/**
 * On a full disk nothing can be noted, and ending a sandbox is what makes room. Whoever comes after a crash then finds
 * it as it was, which is enough to end it.
 */
function noteEnding(oci: OciContext, record: SandboxRecord): void {
  try {
    oci.store.note(record);
  } catch (error) {
    const code = error instanceof Error && "code" in error ? error.code : "";
    // Another process that removes it is as far.
    if (code !== "ENOSPC" && code !== "EDQUOT" && code !== "no_space" && code !== "not_found") throw error;
  }
}

/**
 * The same for a sandbox of which nothing is known but its id: by the guest's number, which the launcher wrote down,
 * and the groups of that name. The folder stays.
 */
export async function endUnrecorded(oci: OciContext, id: SandboxId): Promise<void> {
  const cgroups = cgroupFolders(oci.cgroups().parents, oci.cgroupName, id);
  await endProcesses(oci, id, { guest: writtenDown(oci.store.dir(id)), cgroups });
}

/** Ends everything that runs in a sandbox, whether its guest answers or not; its record and its files stay. */
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
  // Its launcher was killed only now.
  await removeFiles(oci, paths());
}

async function processesGone(oci: OciContext, { guest, cgroups }: Ended): Promise<void> {
  await emptyCgroups(cgroups);
  await guestGone(guest);
  await removeCgroups(cgroups);
  removeEmptyGroups(oci.cgroups().parents, oci.cgroupName);
}

/**
 * The launcher writes the guest's number down before the guest may do anything; the record follows later, or never when
 * its writer dies.
 */
function writtenDown(folder: string): OciDetails["guest"] {
  try {
    const pid = Number(readFileSync(join(folder, GUEST_PID_NAME), "latin1"));
    // The number may be another process's by now.
    return isGuest(pid) ? startedProcess(pid) : null;
  } catch {
    return null;
  }
}

function isGuest(pid: number): boolean {
  return Number.isInteger(pid) && pid > 1 && readFileSync(`/proc/${pid}/cmdline`, "latin1").startsWith(`${GUEST_PATH}\0init\0`);
}

/** Process 1 of a process namespace takes all others with it, wherever they hide. */
async function killGuest(guest: OciDetails["guest"]): Promise<void> {
  if (guest === null || !isRunning(guest)) return;
  try {
    process.kill(guest.pid, "SIGKILL");
  } catch (error) {
    if (isErrno(error, "ESRCH")) return;
    throw new CaissonError("denied", `process ${guest.pid} cannot be ended`, {
      hint: "Only the user who made a sandbox, and root, can remove it.",
      cause: error,
    });
  }
}

async function guestGone(guest: OciDetails["guest"]): Promise<void> {
  const deadline = performance.now() + DEATH_TIMEOUT_MS;
  for (let waitMs = 1; guest !== null && isRunning(guest); waitMs = Math.min(waitMs + 1, 20)) {
    if (performance.now() > deadline) throw new CaissonError("timeout", `process ${guest.pid} was killed and is still there`);
    await delay(waitMs);
  }
}
