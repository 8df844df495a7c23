import { existsSync, mkdirSync, readdirSync, rmdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { z } from "zod";
import { CaissonError } from "../../../contract/error/error.ts";
import { ifErrnoSync, ignore, ignoring, isErrno, UNREACHABLE } from "../../../lib/failures.ts";
import { field, putIfThere, read } from "./cgroup-files.ts";
import { type CgroupParent, limiters } from "./cgroup-parents.ts";

/** A sandbox's groups in one hierarchy: a folder with the leaves `guest` and `work`. */
export const CgroupFolder = z.object({
  version: z.union([z.literal(1), z.literal(2)]),
  controllers: z.array(z.string()),
  dir: z.string(),
  /** Whether the folder is a scope, which systemd creates and removes. In a scope, we only own the groups below it. */
  scope: z.boolean().default(false),
});
export type CgroupFolder = z.infer<typeof CgroupFolder>;

export interface CgroupFigures {
  cpuMs: number | null;
  memoryBytes: number | null;
  memoryKills: number | null;
  processes: number | null;
}

const MAKE_ATTEMPTS = 5;
/** How long killed processes may take to end. They may be in the middle of a write to a slow disk. */
const EMPTY_TIMEOUT_MS = 20_000;
/** After this many checks, the processes are thawed for a moment and frozen again. */
const LOOKS_PER_FREEZE = 50;
/** How long systemd may take to notice an empty scope. */
const SCOPE_GONE_TIMEOUT_MS = 5_000;
export const CGROUP_NAME = "caisson";

/** Returns a sandbox's groups. `group` is the folder for all sandboxes of one state folder. */
export function cgroupFolders(parents: readonly CgroupParent[], group: string, name: string): CgroupFolder[] {
  return parents.map(({ version, controllers, dir, makes }) => ({
    version,
    controllers,
    dir: makes === "systemd" ? join(dir, scopeUnit(group, name)) : join(dir, group, name),
    scope: makes === "systemd",
  }));
}

/** Returns systemd's name for a sandbox's scope. */
export function scopeUnit(group: string, name: string): string {
  return `${group}-${name}.scope`;
}

/** Returns the names of all sandboxes, dead or alive, that have groups here. */
export function cgroupNames(parents: readonly CgroupParent[], group: string): string[] {
  const names = parents.flatMap(({ dir, makes }) => {
    if (makes === "caisson") return namesIn(join(dir, group));
    const [before = "", after = ""] = scopeUnit(group, "/").split("/");
    return namesIn(dir).flatMap((unit) =>
      unit.startsWith(before) && unit.endsWith(after) ? [unit.slice(before.length, unit.length - after.length)] : [],
    );
  });
  return [...new Set(names)];
}

/** Creates the groups, except for scopes. Idempotent. After a failure, `removeCgroups` cleans up. */
export function makeCgroups(folders: readonly CgroupFolder[]): void {
  for (const folder of folders.filter(({ scope }) => !scope)) {
    // Another process may end its last sandbox and remove the folder above in between.
    for (let attempt = 1; ; attempt++) {
      try {
        makeFolder(folder);
        break;
      } catch (cause) {
        if (attempt < MAKE_ATTEMPTS && isErrno(cause, "ENOENT")) continue;
        throw new CaissonError("unavailable", `cannot create the control group ${folder.dir}`, {
          hint: "`caisson doctor` shows which groups can be used.",
          cause,
        });
      }
    }
  }
}

function makeFolder({ version, controllers, dir }: CgroupFolder): void {
  if (version === 2) for (const above of [dirname(dirname(dir)), dirname(dir), dir]) enableBelow(above, controllers);
  // Top down, since `mkdir` searches upward for a parent that exists.
  for (const path of [dir, join(dir, "guest"), join(dir, "work")]) mkdirSync(path, { recursive: true });
}

/** Removes the folders for all sandboxes if they are empty. */
export function removeEmptyGroups(parents: readonly CgroupParent[], group: string): void {
  for (const { dir, makes } of parents) {
    if (makes === "systemd") continue;
    ignoring("in use, or never created", () => rmdirSync(join(dir, group)));
  }
}

/** Enables limits on the groups below this one. */
export function enableBelow(dir: string, controllers: readonly string[]): void {
  mkdirSync(dir, { recursive: true });
  const enabled = read(join(dir, "cgroup.subtree_control"))?.split(/\s+/) ?? [];
  const wanted = limiters.filter((name) => controllers.includes(name) && !enabled.includes(name));
  if (wanted.length > 0) writeFileSync(join(dir, "cgroup.subtree_control"), wanted.map((name) => `+${name}`).join(" "));
}

/**
 * Returns the files through which the guest's first process and the work join their groups, and the file that counts
 * memory kills.
 */
export function cgroupEntrances(folders: readonly CgroupFolder[]): { join: string[]; work: string[]; memoryKills: string | null } {
  const memory = folders.find(({ controllers }) => controllers.includes("memory"));
  return {
    join: folders.map(({ dir }) => join(dir, "guest", "cgroup.procs")),
    work: folders.map(({ dir }) => join(dir, "work", "cgroup.procs")),
    memoryKills: memory === undefined ? null : join(memory.dir, "work", memory.version === 2 ? "memory.events" : "memory.oom_control"),
  };
}

/**
 * Returns the folders that a sandbox sees below /sys/fs/cgroup, by name: the groups of its work, so that programs find
 * their limits in the usual places. The unified hierarchy fills the whole folder; each older hierarchy has its own.
 */
export function cgroupViews(folders: readonly CgroupFolder[]): { name: string; dir: string }[] {
  const unified = folders.find(({ version, controllers }) => version === 2 && limiters.some((name) => controllers.includes(name)));
  if (unified !== undefined) return [{ name: ".", dir: join(unified.dir, "work") }];
  return limiters.flatMap((name) => {
    const folder = folders.find(({ version, controllers }) => version === 1 && controllers.includes(name));
    return folder === undefined ? [] : [{ name, dir: join(folder.dir, "work") }];
  });
}

export function cgroupFigures(folders: readonly CgroupFolder[]): CgroupFigures {
  const number = (controller: string, v1: string, v2: string) => {
    const folder = folders.find(({ controllers }) => controllers.includes(controller));
    const text = folder === undefined ? null : read(join(folder.dir, folder.version === 2 ? v2 : v1));
    return text === null ? null : Number(text);
  };
  const cpu2 = folders.find(({ version, controllers }) => version === 2 && controllers.includes("cpu"));
  const usage = cpu2 === undefined ? null : field(read(join(cpu2.dir, "cpu.stat")), "usage_usec");
  const nanoseconds = cpu2 === undefined ? number("cpuacct", "cpuacct.usage", "") : null;
  const killsPath = cgroupEntrances(folders).memoryKills;
  return {
    cpuMs: usage !== null ? usage / 1000 : nanoseconds === null ? null : nanoseconds / 1e6,
    memoryBytes: number("memory", "memory.usage_in_bytes", "memory.current"),
    memoryKills: killsPath === null ? null : field(read(killsPath), "oom_kill"),
    processes: processesIn(folders)?.length ?? null,
  };
}

/** Returns the host pids of every process in the sandbox, or null if there are no groups. */
export function processesIn(folders: readonly CgroupFolder[]): number[] | null {
  if (folders.length === 0) return null;
  const pids = new Set<number>();
  for (const { dir } of folders) {
    for (const leaf of ["guest", "work"]) {
      for (const line of (read(join(dir, leaf, "cgroup.procs")) ?? "").split("\n")) if (line !== "") pids.add(Number(line));
    }
  }
  return [...pids];
}

export function canFreeze(folders: readonly { version: 1 | 2; controllers: readonly string[] }[]): boolean {
  return folders.some(({ version, controllers }) => version === 2 || controllers.includes("freezer"));
}

/**
 * Freezes or thaws every process of the work, and waits until done. The guest stays awake, so that clients can connect
 * and resume the sandbox.
 */
export async function freezeWork(folders: readonly CgroupFolder[], state: "frozen" | "thawed"): Promise<void> {
  const v1 = folders.find(({ version, controllers }) => version === 1 && controllers.includes("freezer"));
  const v2 = folders.find(({ version }) => version === 2);
  const folder = v1 ?? v2;
  if (folder === undefined) throw new CaissonError("unsupported", "no control group can freeze processes");
  const frozen = state === "frozen";
  const work = join(folder.dir, "work");
  const isDone = folder.version === 1 ? freezeFirstVersion(work, frozen ? "FROZEN" : "THAWED") : freezeSecondVersion(work, frozen ? 1 : 0);
  await until(`the processes of ${work} to be ${state}`, isDone);
}

/**
 * A v1 group in which processes are being created may stay at `FREEZING` indefinitely. To freeze the processes that it
 * missed, the kernel needs a second request, and on some machines a thaw before that request.
 */
function freezeFirstVersion(work: string, state: "FROZEN" | "THAWED"): () => boolean {
  const file = join(work, "freezer.state");
  writeFileSync(file, state);
  let looks = 0;
  return () => {
    if (read(file)?.trim() === state) return true;
    looks += 1;
    if (looks % LOOKS_PER_FREEZE === 0) writeFileSync(file, "THAWED");
    writeFileSync(file, state);
    return false;
  };
}

function freezeSecondVersion(work: string, frozen: 0 | 1): () => boolean {
  writeFileSync(join(work, "cgroup.freeze"), String(frozen));
  return () => field(read(join(work, "cgroup.events")), "frozen") === frozen;
}

/** Whether the work, or the guest itself, is frozen. */
export function isFrozen(folders: readonly CgroupFolder[]): boolean {
  return folders.some(({ version, controllers, dir }) =>
    ["work", "guest"].some((leaf) => {
      if (version === 2) return field(read(join(dir, leaf, "cgroup.events")), "frozen") === 1;
      return controllers.includes("freezer") && /^FR/.test(read(join(dir, leaf, "freezer.state")) ?? "");
    }),
  );
}

/** Kills every process in the groups and waits until none remains. */
export async function emptyCgroups(folders: readonly CgroupFolder[]): Promise<void> {
  if (folders.length === 0) return;
  const killFile = folders
    .filter(({ version }) => version === 2)
    .map(({ dir }) => join(dir, "cgroup.kill"))
    .find(existsSync);
  if (killFile !== undefined) putIfThere(killFile, "1");
  const freezer = folders.find(({ version, controllers }) => version === 1 && controllers.includes("freezer"));
  await until(`the processes of ${folders[0]?.dir} to end`, () => {
    const pids = processesIn(folders) ?? [];
    if (pids.length === 0) return true;
    // Frozen processes cannot die, and without cgroup.kill new ones may appear while we read the list: kill, thaw,
    // check again.
    if (killFile === undefined) for (const pid of pids) killQuietly(pid);
    if (freezer !== undefined) putIfThere(join(freezer.dir, "work", "freezer.state"), "THAWED");
    return false;
  });
}

/** Removes groups without processes. Idempotent. */
export async function removeCgroups(folders: readonly CgroupFolder[]): Promise<void> {
  for (const { dir, scope } of folders) {
    for (const path of [join(dir, "guest"), join(dir, "work")]) await removeGroup(path);
    // systemd removes a scope as soon as it notices that it is empty.
    if (scope)
      await ignore(
        until(`systemd to remove ${dir}`, () => !existsSync(dir), SCOPE_GONE_TIMEOUT_MS),
        "we remove it below",
      );
    await removeGroup(dir);
  }
}

async function removeGroup(path: string): Promise<void> {
  await until(`the removal of ${path}`, () => {
    try {
      rmdirSync(path);
      return true;
    } catch (error) {
      // A process that has just died still counts for a moment.
      if (isErrno(error, "EBUSY")) return false;
      if (isErrno(error, "ENOENT")) return true;
      throw error;
    }
  });
}

async function until(what: string, done: () => boolean, timeoutMs = EMPTY_TIMEOUT_MS): Promise<void> {
  const deadline = performance.now() + timeoutMs;
  for (let waitMs = 0; !done(); waitMs = Math.min(waitMs + 1, 20)) {
    if (performance.now() > deadline) throw new CaissonError("timeout", `timed out after ${timeoutMs / 1000} s waiting for ${what}`);
    await (waitMs === 0 ? new Promise(setImmediate) : delay(waitMs));
  }
}

function killQuietly(pid: number): void {
  ifErrnoSync(() => process.kill(pid, "SIGKILL"), ["ESRCH", "EPERM"], false);
}

/** Returns an empty list if no group was ever created here. */
function namesIn(dir: string): string[] {
  return ifErrnoSync(() => readdirSync(dir), [...UNREACHABLE, "ENODEV"], []);
}
