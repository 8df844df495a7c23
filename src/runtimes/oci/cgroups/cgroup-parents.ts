import { accessSync, constants, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { SCOPE_SLICE } from "../systemd/user-scope.ts";
import type { UserSystemd } from "../systemd/user-systemd.ts";
import { cgroupLayout, type Hierarchy } from "./cgroup-layout.ts";

/** Where sandboxes' groups are made in one hierarchy. */
export interface CgroupParent {
  version: 1 | 2;
  /** Those of the parent itself: not every group gets all that its hierarchy has. */
  controllers: string[];
  /** A folder below it holds one for each sandbox; where systemd makes them, it holds the sandboxes' scopes. */
  dir: string;
  /** This process's own group, when it may write to it. */
  own: string | null;
  /** Who makes a sandbox's group: this program, or the user's systemd when asked. */
  makes: "caisson" | "systemd";
}

export interface CgroupParents {
  parents: CgroupParent[];
  /** In which groups this process was when that was found out. */
  ownCgroups: string;
  /** Why memory, cpu or pids cannot be limited, and the fix; null when all can. */
  reason: string | null;
  /** The same in short, without what follows from it. */
  briefReason: string | null;
  /** The user's systemd, where it makes the groups. */
  manager: UserSystemd | null;
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

export interface CgroupParentsOptions {
  layout: readonly Hierarchy[];
  root: boolean;
  /** Looks for the systemd of an ordinary user; `silent` is why it is not to be asked though it may be there. */
  manager?: { find(mountPoint: string): UserSystemd | null; silent: string | null };
  /** How this program was called, for a fix that says to call it otherwise. */
  command?: string;
  access?: CgroupAccess;
}

/**
 * Root makes its groups below the top of each hierarchy, so that a sandbox outlives the service that made it. Anybody
 * else has them made by their own systemd, in a scope for each sandbox; where there is none, where they were given a
 * group of their own.
 */
export function cgroupParents(options: CgroupParentsOptions): CgroupParents {
  const access = options.access ?? realAccess;
  const manager = options.root || options.manager?.silent != null ? null : unifiedManager(options);
  const parents = options.layout.flatMap((hierarchy) => {
    if (hierarchy.version === 1 && !hierarchy.controllers.some(isUseful)) return [];
    const place = options.root ? topOf(hierarchy, access) : delegated(hierarchy, { manager, access });
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

type Place = Pick<CgroupParent, "controllers" | "dir" | "makes">;

function topOf(hierarchy: Hierarchy, access: CgroupAccess): Place | null {
  const { mountPoint: dir, controllers } = hierarchy;
  return access.writable(dir) && access.writable(join(dir, "cgroup.procs")) ? { dir, controllers, makes: "caisson" } : null;
}

/** Only where one hierarchy has all that limits: systemd gives no user a share of the others. */
function unifiedManager({ layout, manager }: CgroupParentsOptions): UserSystemd | null {
  const unified = layout.find(({ version, controllers }) => version === 2 && controllers.some(isUseful));
  return unified === undefined ? null : (manager?.find(unified.mountPoint) ?? null);
}

function delegated(hierarchy: Hierarchy, { manager, access }: { manager: UserSystemd | null; access: CgroupAccess }): Place | null {
  const usable = (dir: string) => access.writable(dir) && access.writable(join(dir, "cgroup.procs"));
  const controllersOf = (dir: string) => words(access.read(join(dir, "cgroup.controllers")));
  const limits = hierarchy.controllers.some(isUseful);
  if (hierarchy.version === 2 && limits && manager !== null)
    return { dir: join(manager.dir, SCOPE_SLICE), controllers: controllersOf(manager.dir), makes: "systemd" };
  if (hierarchy.own === null) return null;
  if (hierarchy.version === 1 || !limits)
    return usable(hierarchy.own) ? { dir: hierarchy.own, controllers: hierarchy.controllers, makes: "caisson" } : null;
  // In v2 a group with processes of its own can have no limits below it, so the parent is the nearest one above without
  // any.
  for (let dir = dirname(hierarchy.own); dir.startsWith(hierarchy.mountPoint) && usable(dir); dir = dirname(dir)) {
    const enabled = words(access.read(join(dir, "cgroup.subtree_control")));
    if (limiters.some((name) => enabled.includes(name))) return { dir, controllers: controllersOf(dir), makes: "caisson" };
  }
  return null;
}

type Reasons = Pick<CgroupParents, "reason" | "briefReason">;

/** What is missing, a semicolon, and how to fix it. */
function reasonsFor(missing: readonly string[], options: ShortageOptions): Reasons {
  if (missing.length === 0) return { reason: null, briefReason: null };
  const { cause, fix } = shortage(missing, options);
  return { reason: `${cause}, so ${unlimited(missing)}; ${fix}`, briefReason: `${cause}; ${fix}` };
}

type ShortageOptions = CgroupParentsOptions & { parents: readonly CgroupParent[] };

function shortage(missing: readonly string[], options: ShortageOptions): { cause: string; fix: string } {
  const asRoot = `run it as root: \`sudo ${options.command ?? "caisson …"}\``;
  if (options.layout.length === 0)
    return { cause: "no control groups are mounted", fix: "mount them: `mount -t cgroup2 none /sys/fs/cgroup`" };
  if (options.root)
    return { cause: "/sys/fs/cgroup is read-only or lacks controllers", fix: "remount it: `mount -o remount,rw /sys/fs/cgroup`" };
  if (options.manager?.silent != null) return { cause: options.manager.silent, fix: `look at \`systemctl --user status\`, or ${asRoot}` };
  if (options.parents.some(({ makes }) => makes === "systemd"))
    return { cause: `systemd gives this user no share of ${missing.join(" and ")}`, fix: delegationFix(missing) };
  if (options.parents.some(({ version, controllers }) => version === 2 && controllers.length > 0))
    return { cause: `the control group of this user lacks ${missing.join(" and ")}`, fix: asRoot };
  const unified = options.layout.some(({ version, controllers }) => version === 2 && controllers.some(isUseful));
  const other = unified ? "log in through systemd (ssh, `machinectl shell`)" : "boot with `systemd.unified_cgroup_hierarchy=1`";
  return { cause: "no control group is delegated to this user", fix: `${other}, or ${asRoot}` };
}

/** Distributions differ in what they give to users; the setting takes effect with the user's next login. */
function delegationFix(missing: readonly string[]): string {
  const file = "/etc/systemd/system/user@.service.d/caisson.conf";
  const all = [...new Set(["memory", "pids", ...missing])].join(" ");
  return `as root: \`mkdir -p ${dirname(file)} && printf '[Service]\\nDelegate=${all}\\n' > ${file} && systemctl daemon-reload\`, then log in again`;
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
