import { lstat, readdir } from "node:fs/promises";
import { join } from "node:path";
import type { DiskUsage, MachineUsage } from "../../contract/machine/machine-verbs.ts";
import { ABSENT, ifErrno, UNREACHABLE } from "../../lib/failures.ts";

/** The most entries to measure in total. Further entries do not count, and the answer says so. */
const ENTRIES_MAX = 300_000;
const LOOKS_AT_ONCE = 64;

/** The kind of each entry of the state folder, in the user's terms. */
const kindOf: Readonly<Record<string, DiskUsage["kind"]>> = {
  sandboxes: "sandboxes",
  snapshots: "snapshots",
  sessions: "sessions",
  "log.db": "log",
  "log.db-wal": "log",
  "log.db-shm": "log",
  images: "images",
  templates: "templates",
  builds: "builds",
  mirrors: "mirrors",
  mirror: "packages",
  uploads: "uploads",
  artifacts: "artifacts",
  ships: "ships",
};
/** Folders with one entry for each thing. */
const lists: ReadonlySet<string> = new Set(["sandboxes", "snapshots", "sessions", "mirrors", "uploads", "artifacts", "ships"]);
const TEMPLATE = /^(image|host|rootless)-/;

/** See `MachineVerbs.usage`. */
export async function usageOf(stateDir: string): Promise<MachineUsage> {
  const bound = { entries: ENTRIES_MAX };
  const found = new Map<DiskUsage["kind"], DiskUsage>();
  for (const { kind, path, count } of await placesIn(stateDir)) {
    const usage = found.get(kind) ?? { kind, count: 0, bytes: 0 };
    const { bytes } = await sizeOf(path, bound);
    found.set(kind, { kind, count: usage.count + count, bytes: usage.bytes + bytes });
  }
  const kinds = [...found.values()].sort((a, b) => b.bytes - a.bytes);
  return { stateDir, kinds, bytes: kinds.reduce((sum, { bytes }) => sum + bytes, 0), isMinimum: bound.entries <= 0 };
}

interface Place {
  kind: DiskUsage["kind"];
  path: string;
  /** The number of things there. */
  count: number;
}

async function placesIn(stateDir: string): Promise<Place[]> {
  const places: Place[] = [];
  for (const name of await ifErrno(readdir(stateDir), ABSENT, [])) {
    const path = join(stateDir, name);
    const names = lists.has(name) || name === "templates" ? await ifErrno(readdir(path), UNREACHABLE, []) : [];
    if (name === "templates") places.push(...names.map((each) => templatePlace(join(path, each), each)));
    else if (lists.has(name))
      places.push({ kind: kindOf[name] ?? "other", path, count: names.filter((each) => !each.startsWith(".")).length });
    // The names of images are stored apart from their files, which are counted.
    else places.push({ kind: kindOf[name] ?? "other", path, count: name === "images" ? 0 : 1 });
  }
  return places;
}

function templatePlace(path: string, name: string): Place {
  const of = TEMPLATE.exec(name)?.[1];
  return { kind: of === "image" ? "images" : "templates", path, count: of === undefined ? 0 : 1 };
}

/**
 * Returns the disk usage of a file or folder. Does not follow links; a folder that cannot be read counts without its
 * content.
 */
export async function sizeOf(path: string, bound: { entries: number } = { entries: ENTRIES_MAX }): Promise<{ bytes: number }> {
  const top = await ifErrno(lstat(path), UNREACHABLE, null);
  if (top === null) return { bytes: 0 };
  let bytes = top.blocks * 512;
  const folders = top.isDirectory() ? [path] : [];
  for (let folder = folders.pop(); folder !== undefined && bound.entries > 0; folder = folders.pop()) {
    const at = folder;
    const names = await ifErrno(readdir(at), UNREACHABLE, []);
    for (let first = 0; first < names.length && bound.entries > 0; first += LOOKS_AT_ONCE) {
      const some = names.slice(first, first + LOOKS_AT_ONCE).map((name) => join(at, name));
      bound.entries -= some.length;
      for (const [index, stats] of (await Promise.all(some.map((each) => ifErrno(lstat(each), UNREACHABLE, null)))).entries()) {
        bytes += (stats?.blocks ?? 0) * 512;
        if (stats?.isDirectory()) folders.push(some[index] as string);
      }
    }
  }
  return { bytes };
}
