import { accessSync, constants, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { ifErrnoSync, UNREACHABLE } from "../../../lib/failures.ts";
import { SCOPE_SLICE } from "../systemd/user-scope.ts";
import type { UserSystemd } from "../systemd/user-systemd.ts";
import { cgroupLayout, type Hierarchy } from "./cgroup-layout.ts";

/** Where the groups of sandboxes are created in one hierarchy. */
export interface CgroupParent {
  version: 1 | 2;
  /** The controllers of the parent itself, which may have fewer than its hierarchy. */
  controllers: string[];
  /** Contains a folder with one group per sandbox, or the scopes of sandboxes if systemd creates them. */
  dir: string;
  /** This process's own group, or null if it may not write to it. */
  own: string | null;
  /** Who creates a sandbox's group: this program, or the user's systemd on request. */
  makes: "caisson" | "systemd";
}

export interface CgroupParents {
  parents: CgroupParent[];
  /** The groups of this process at the time of the check. */
  ownCgroups: string;
  /** Why memory, cpu or pids cannot be limited, and the fix. Null if all can. */
  reason: string | null;
  /** The same in brief, without the consequences. */
  briefReason: string | null;
  /** The user's systemd if it creates the groups, otherwise null. */
  manager: UserSystemd | null;
}

/** The controllers that limit the work of a sandbox separately from its guest. */
export const limiters = ["memory", "pids", "cpu"] as const;
const whole = ["cpuacct", "freezer"];

/** Returns the mounted hierarchies, as the kernel reports them. */
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

export interface CgroupParentsOptions {
  layout: readonly Hierarchy[];
  root: boolean;
  /** Finds the systemd of an ordinary user. `silent` is the reason not to ask it even if it exists, or null. */
  manager?: { find(mountPoint: string): UserSystemd | null; silent: string | null };
  /** The command line of this program, for a fix that suggests another one. */
  command?: string;
  access?: CgroupAccess;
}

/**
 * Chooses where groups are created. For root, below the top of each hierarchy, so that a sandbox outlives the service
 * that created it. For other users, in one scope per sandbox that their systemd creates; without systemd, in a group
 * that was delegated to them.
 */
export function cgroupParents(options: CgroupParentsOptions): CgroupParents {
  const access = options.access ?? realAccess;
  const manager = options.root || options.manager?.silent != null ? null : unifiedManager(options);
  const parents = options.layout.flatMap((hierarchy) => {
    if (hierarchy.version === 1 && !hierarchy.controllers.some(isUseful)) return [];
    const place = options.root ? topOf(hierarchy, access) : findDelegated(hierarchy, { manager, access });
    if (place === null) return [];
    const own = hierarchy.own !== null && access.writable(join(hierarchy.own, "cgroup.procs")) ? hierarchy.own : null;
    return [{ version: hierarchy.version, controllers: place.controllers.filter(isUseful), dir: place.dir, own, makes: place.makes }];
  });
  const missing = limiters.filter((name) => !parents.some((parent) => parent.controllers.includes(name)));
  return {
    parents,
    ownCgroups: readOwnCgroups(),
    ...reasonsFor(missing, { ...options, parents }),
    manager: parents.some(({ makes }) => makes === "systemd") ? manager : null,
  };
}

/** File access that the choice depends on, besides the layout. */
export interface CgroupAccess {
  writable(path: string): boolean;
  read(path: string): string;
}

const realAccess: CgroupAccess = {
  writable(path) {
    return ifErrnoSync(() => accessSync(path, constants.W_OK) === undefined, [...UNREACHABLE, "EROFS"], false);
  },
  read: readText,
};

type Place = Pick<CgroupParent, "controllers" | "dir" | "makes">;

function topOf(hierarchy: Hierarchy, access: CgroupAccess): Place | null {
  const { mountPoint: dir, controllers } = hierarchy;
  return access.writable(dir) && access.writable(join(dir, "cgroup.procs")) ? { dir, controllers, makes: "caisson" } : null;
}

/**
 * Finds the user's systemd. Null unless the unified hierarchy can set limits: systemd delegates no other hierarchy to
 * users.
 */
function unifiedManager({ layout, manager }: CgroupParentsOptions): UserSystemd | null {
  const unified = layout.find(({ version, controllers }) => version === 2 && controllers.some(isUseful));
  return unified === undefined ? null : (manager?.find(unified.mountPoint) ?? null);
}

function findDelegated(hierarchy: Hierarchy, { manager, access }: { manager: UserSystemd | null; access: CgroupAccess }): Place | null {
  const usable = (dir: string) => access.writable(dir) && access.writable(join(dir, "cgroup.procs"));
  const controllersOf = (dir: string) => words(access.read(join(dir, "cgroup.controllers")));
  const limits = hierarchy.controllers.some(isUseful);
  if (hierarchy.version === 2 && limits && manager !== null)
    return { dir: join(manager.dir, SCOPE_SLICE), controllers: controllersOf(manager.dir), makes: "systemd" };
  if (hierarchy.own === null) return null;
  if (hierarchy.version === 1 || !limits)
    return usable(hierarchy.own) ? { dir: hierarchy.own, controllers: hierarchy.controllers, makes: "caisson" } : null;
  // In v2, a group with processes cannot limit groups below it, so the parent is the nearest group above without
  // processes.
  for (let dir = dirname(hierarchy.own); dir.startsWith(hierarchy.mountPoint) && usable(dir); dir = dirname(dir)) {
    const enabled = words(access.read(join(dir, "cgroup.subtree_control")));
    if (limiters.some((name) => enabled.includes(name))) return { dir, controllers: controllersOf(dir), makes: "caisson" };
  }
  return null;
}

type Reasons = Pick<CgroupParents, "reason" | "briefReason">;

/** Returns the cause and the fix, separated by a semicolon. */
function reasonsFor(missing: readonly string[], options: ShortageOptions): Reasons {
  if (missing.length === 0) return { reason: null, briefReason: null };
  const { cause, fix } = shortage(missing, options);
  return { reason: `${cause}, so ${describeUnlimited(missing)}; ${fix}`, briefReason: `${cause}; ${fix}` };
}

type ShortageOptions = CgroupParentsOptions & { parents: readonly CgroupParent[] };

function shortage(missing: readonly string[], options: ShortageOptions): { cause: string; fix: string } {
  const asRoot = `run it as root: \`sudo ${options.command ?? "caisson …"}\``;
  if (options.layout.length === 0)
    return { cause: "no control groups are mounted", fix: "mount them: `mount -t cgroup2 none /sys/fs/cgroup`" };
  if (options.root)
    return { cause: "/sys/fs/cgroup is read-only or lacks controllers", fix: "remount it: `mount -o remount,rw /sys/fs/cgroup`" };
  if (options.manager?.silent != null) return { cause: options.manager.silent, fix: `check \`systemctl --user status\`, or ${asRoot}` };
  if (options.parents.some(({ makes }) => makes === "systemd"))
    return { cause: `systemd does not delegate ${missing.join(" and ")} to this user`, fix: delegationFix(missing) };
  if (options.parents.some(({ version, controllers }) => version === 2 && controllers.length > 0))
    return { cause: `this user's control group lacks ${missing.join(" and ")}`, fix: asRoot };
  const unified = options.layout.some(({ version, controllers }) => version === 2 && controllers.some(isUseful));
  const other = unified ? "log in through systemd (ssh, `machinectl shell`)" : "boot with `systemd.unified_cgroup_hierarchy=1`";
  return { cause: "no control group is delegated to this user", fix: `${other}, or ${asRoot}` };
}

/** Distributions differ in what they delegate to users. The setting takes effect at the user's next login. */
function delegationFix(missing: readonly string[]): string {
  const file = "/etc/systemd/system/user@.service.d/caisson.conf";
  const all = [...new Set(["memory", "pids", ...missing])].join(" ");
  return `as root: \`mkdir -p ${dirname(file)} && printf '[Service]\\nDelegate=${all}\\n' > ${file} && systemctl daemon-reload\`, then log in again`;
}

/** Says what is not limited. The guest still limits the processes of the sandbox's user. */
function describeUnlimited(missing: readonly string[]): string {
  const names = missing.filter((name) => name !== "pids").map((name) => (name === "cpu" ? "cpus" : name));
  const processes = missing.includes("pids") ? ["only processes of the sandbox's own user are counted"] : [];
  return [...(names.length === 0 ? [] : [`${names.join(" and ")} cannot be limited`]), ...processes].join(", and ");
}

function isUseful(controller: string): boolean {
  return whole.includes(controller) || limiters.some((name) => name === controller);
}

function words(text: string): string[] {
  return text.split(/\s+/).filter((word) => word !== "");
}

function readText(path: string): string {
  return ifErrnoSync(() => readFileSync(path, "latin1"), [...UNREACHABLE, "ENODEV"], "");
}
