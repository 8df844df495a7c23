import { execFileSync } from "node:child_process";
import { readdirSync, readFileSync, readlinkSync, rmdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";

const PROCESS_END_MS = 15_000;

/** Waits until a process has ended, even if it is not our child. */
export async function waitForProcessEnd(pid: number): Promise<boolean> {
  const deadline = Date.now() + PROCESS_END_MS;
  while (Date.now() < deadline) {
    if (!processLives(pid)) return true;
    await sleep(20);
  }
  return false;
}

export function processLives(pid: number): boolean {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "latin1");
    return !["Z", "X"].includes(stat.slice(stat.lastIndexOf(")") + 2, stat.lastIndexOf(")") + 3));
  } catch {
    return false;
  }
}

/**
 * Returns the processes of an engine. Its helpers outlive an engine that was killed with -9, and each has the engine's
 * folder in its command line or arguments.
 */
function processesOf(folder: string): number[] {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name) && Number(name) !== process.pid)
    .map(Number)
    .filter((pid) => {
      try {
        const command = readFileSync(`/proc/${pid}/cmdline`, "latin1");
        const program = readlinkSync(`/proc/${pid}/exe`);
        return command.includes(folder) && /(dockerd|containerd|containerd-shim[^/]*|podman|conmon|runc|crun)$/.test(program);
      } catch {
        return false;
      }
    });
}

/**
 * Ends and removes everything that an engine in `folder` and under the cgroup `cgroupName` left on the machine,
 * including the folder.
 */
export async function removeRemains({ folder, cgroupName }: { folder: string; cgroupName: string }): Promise<void> {
  for (const pid of [...processesOf(folder), ...cgroupFolders(cgroupName).flatMap(processesInCgroup)]) {
    try {
      process.kill(pid, "SIGKILL");
    } catch {
      continue;
    }
    await waitForProcessEnd(pid);
  }
  for (const mount of mountsBelow(folder)) execFileSync("umount", ["-l", mount], { stdio: "ignore" });
  for (const cgroup of cgroupFolders(cgroupName)) removeCgroup(cgroup);
  // Podman leaves the parent of its cgroups behind. Those of a live Podman are in use, and stay.
  for (const cgroup of cgroupFolders("libpod_parent")) removeEmptyCgroup(cgroup);
  rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
}

function mountsBelow(folder: string): string[] {
  return readFileSync("/proc/self/mountinfo", "utf8")
    .split("\n")
    .map((line) => line.split(" ")[4] ?? "")
    .filter((point) => point === folder || point.startsWith(`${folder}/`))
    .reverse();
}

/** `/sys/fs/cgroup/<controller>/<name>` on v1, `/sys/fs/cgroup/<name>` on v2. */
function cgroupFolders(name: string): string[] {
  const root = "/sys/fs/cgroup";
  const candidates = [join(root, name), ...readdirSync(root).map((controller) => join(root, controller, name))];
  return candidates.filter(isFolder);
}

function isFolder(path: string): boolean {
  try {
    readdirSync(path);
    return true;
  } catch {
    return false;
  }
}

function processesInCgroup(cgroup: string): number[] {
  const own = readFileSync(join(cgroup, "cgroup.procs"), "latin1").split("\n").filter(Boolean).map(Number);
  return [...own, ...foldersIn(cgroup).flatMap(processesInCgroup)];
}

function removeCgroup(cgroup: string): void {
  for (const child of foldersIn(cgroup)) removeCgroup(child);
  rmdirSync(cgroup);
}

function removeEmptyCgroup(cgroup: string): void {
  try {
    removeCgroup(cgroup);
  } catch {
    // In use by another process.
  }
}

function foldersIn(folder: string): string[] {
  return readdirSync(folder, { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map((entry) => join(folder, entry.name));
}
