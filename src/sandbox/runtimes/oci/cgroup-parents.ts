import { accessSync, constants, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { cgroupLayout, type Hierarchy } from "./cgroup-layout.ts";

/** Where sandboxes' groups are made in one hierarchy. */
export interface CgroupParent {
  version: 1 | 2;
  controllers: string[];
  /** A folder below it holds one for each sandbox. */
  dir: string;
  /** This process's own group, when it may write to it. */
  own: string | null;
}

export interface CgroupParents {
  parents: CgroupParent[];
  /** In which groups this process was when that was found out. */
  ownCgroups: string;
  /** Why memory, cpu or pids cannot be limited, and the fix; null when all can. */
  reason: string | null;
}

/** Limits are put on the work of a sandbox, not on its guest, in these. */
export const limiters = ["memory", "pids", "cpu"] as const;
const whole = ["cpuacct", "freezer"];

/** What is there, as the kernel tells. */
export function readLayout(): Hierarchy[] {
  return cgroupLayout({
    mountinfo: readText("/proc/self/mountinfo"),
    ownCgroups: readOwnCgroups(),
    unifiedControllers: (mountPoint) => words(readText(join(mountPoint, "cgroup.controllers"))),
  });
}

export function readOwnCgroups(): string {
  return readText("/proc/self/cgroup");
}

/**
 * Root makes its groups below the top of each hierarchy, so that a sandbox outlives the service that made it. Anybody else makes
 * them where they were given a group of their own: `Delegate=yes` with systemd, a writable folder otherwise.
 */
export function cgroupParents(options: { layout: readonly Hierarchy[]; root: boolean; access?: CgroupAccess }): CgroupParents {
  const access = options.access ?? realAccess;
  const parents = options.layout.flatMap((hierarchy) => {
    const controllers = hierarchy.controllers.filter(isUseful);
    if (hierarchy.version === 1 && controllers.length === 0) return [];
    const dir = options.root ? topOf(hierarchy, access) : delegated(hierarchy, access);
    const own = hierarchy.own !== null && access.writable(join(hierarchy.own, "cgroup.procs")) ? hierarchy.own : null;
    return dir === null ? [] : [{ version: hierarchy.version, controllers, dir, own }];
  });
  const missing = limiters.filter((name) => !parents.some((parent) => parent.controllers.includes(name)));
  return { parents, ownCgroups: readOwnCgroups(), reason: missing.length === 0 ? null : reasonFor(missing, options) };
}

/** What the choice depends on, besides the layout. */
export interface CgroupAccess {
  writable(path: string): boolean;
  read(path: string): string;
}

const realAccess: CgroupAccess = {
  writable(path) {
    try {
      accessSync(path, constants.W_OK);
      return true;
    } catch {
      return false;
    }
  },
  read: readText,
};

function topOf(hierarchy: Hierarchy, access: CgroupAccess): string | null {
  return access.writable(hierarchy.mountPoint) && access.writable(join(hierarchy.mountPoint, "cgroup.procs")) ? hierarchy.mountPoint : null;
}

function delegated(hierarchy: Hierarchy, access: CgroupAccess): string | null {
  if (hierarchy.own === null) return null;
  const usable = (dir: string) => access.writable(dir) && access.writable(join(dir, "cgroup.procs"));
  if (hierarchy.version === 1 || !hierarchy.controllers.some(isUseful)) return usable(hierarchy.own) ? hierarchy.own : null;
  // In v2 a group with processes of its own can have no limits below it, so the parent is the nearest one above without any.
  for (let dir = dirname(hierarchy.own); dir.startsWith(hierarchy.mountPoint) && usable(dir); dir = dirname(dir)) {
    const enabled = words(access.read(join(dir, "cgroup.subtree_control")));
    if (limiters.some((name) => enabled.includes(name))) return dir;
  }
  return null;
}

function reasonFor(missing: readonly string[], options: { layout: readonly Hierarchy[]; root: boolean }): string {
  const what = unlimited(missing);
  if (options.layout.length === 0) return `no control groups are mounted, so ${what}; mount them: \`mount -t cgroup2 none /sys/fs/cgroup\``;
  if (options.root)
    return `/sys/fs/cgroup is read-only or lacks controllers, so ${what}; remount it: \`mount -o remount,rw /sys/fs/cgroup\``;
  return `no control group is delegated to this user, so ${what}; start Caisson with \`systemd-run --user --scope -p Delegate=yes caisson …\`, or as root`;
}

/** Processes of the sandbox's user are limited all the same, by the guest. */
function unlimited(missing: readonly string[]): string {
  const names = missing.filter((name) => name !== "pids").map((name) => (name === "cpu" ? "cpus" : name));
  const processes = missing.includes("pids") ? ["of processes only those of the sandbox's own user are counted"] : [];
  return [...(names.length === 0 ? [] : [`${names.join(" and ")} cannot be limited`]), ...processes].join(", and ");
}

function isUseful(controller: string): boolean {
  return whole.includes(controller) || limiters.some((name) => name === controller);
}

function words(text: string): string[] {
  return text.split(/\s+/).filter((word) => word !== "");
}

function readText(path: string): string {
  try {
    return readFileSync(path, "latin1");
  } catch {
    return "";
  }
}
