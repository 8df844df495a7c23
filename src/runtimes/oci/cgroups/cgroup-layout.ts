import { join, relative } from "node:path";

/** A mounted control group hierarchy: one or more controllers (v1), or the unified hierarchy (v2). */
export interface Hierarchy {
  version: 1 | 2;
  controllers: string[];
  mountPoint: string;
  /** The folder of this process's group, or null if the mount does not include it. */
  own: string | null;
}

interface CgroupMount {
  version: 1 | 2;
  root: string;
  mountPoint: string;
  options: string[];
}

/**
 * Reads the layout from the texts of /proc/self/mountinfo and /proc/self/cgroup. `unifiedControllers` returns the
 * controllers of a v2 mount (`cgroup.controllers` of its root). On a hybrid machine the list is empty, but the mount
 * can still kill and freeze.
 */
export function cgroupLayout(options: {
  mountinfo: string;
  ownCgroups: string;
  unifiedControllers: (mountPoint: string) => string[];
}): Hierarchy[] {
  const own = parseOwn(options.ownCgroups);
  const hierarchies: Hierarchy[] = [];
  for (const mount of parseMounts(options.mountinfo)) {
    const line = own.find((entry) =>
      mount.version === 2 ? entry.id === 0 : entry.controllers.some((name) => mount.options.includes(name)),
    );
    if (line === undefined || line.controllers.some((name) => name.startsWith("name="))) continue;
    if (
      hierarchies.some(
        (known) => known.version === mount.version && (mount.version === 2 || sameNames(known.controllers, line.controllers)),
      )
    )
      continue;
    hierarchies.push({
      version: mount.version,
      controllers: mount.version === 2 ? options.unifiedControllers(mount.mountPoint) : line.controllers,
      mountPoint: mount.mountPoint,
      own: belowMount(mount, line.path),
    });
  }
  return hierarchies;
}

function parseMounts(mountinfo: string): CgroupMount[] {
  return mountinfo.split("\n").flatMap((line) => {
    const [before, after] = line.split(" - ");
    if (before === undefined || after === undefined) return [];
    const fields = before.split(" ");
    const [type, , superOptions = ""] = after.split(" ");
    const [root, mountPoint] = [fields[3], fields[4]];
    if ((type !== "cgroup" && type !== "cgroup2") || root === undefined || mountPoint === undefined) return [];
    return [
      {
        version: type === "cgroup2" ? 2 : 1,
        root: unescapePath(root),
        mountPoint: unescapePath(mountPoint),
        options: superOptions.split(","),
      } as const,
    ];
  });
}

function parseOwn(text: string): { id: number; controllers: string[]; path: string }[] {
  return text.split("\n").flatMap((line) => {
    const [, id, controllers, path] = /^(\d+):([^:]*):(.*)$/.exec(line) ?? [];
    if (path === undefined) return [];
    return [{ id: Number(id), controllers: controllers === "" ? [] : (controllers ?? "").split(","), path }];
  });
}

/**
 * Returns a group's folder. Null if the mount shows only another part of the hierarchy, as in a container without a
 * cgroup namespace.
 */
function belowMount(mount: CgroupMount, path: string): string | null {
  const below = relative(mount.root, path);
  return below.startsWith("..") ? null : join(mount.mountPoint, below);
}

function sameNames(left: readonly string[], right: readonly string[]): boolean {
  return left.join() === right.join();
}

/** mountinfo writes blanks and similar characters as three octal digits. */
function unescapePath(path: string): string {
  return path.replace(/\\([0-7]{3})/g, (_, digits: string) => String.fromCharCode(Number.parseInt(digits, 8)));
}
