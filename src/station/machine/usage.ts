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
  mirror: "caches",
  templates: "caches",
  images: "caches",
  git: "caches",
};

/** See `MachineVerbs.usage`. */
export async function usageOf(stateDir: string): Promise<MachineUsage> {
  const bound = { entries: ENTRIES_MAX };
  const found = new Map<DiskUsage["kind"], DiskUsage>();
  for (const name of await ifErrno(readdir(stateDir), ABSENT, [])) {
    const kind = kindOf[name] ?? "other";
    const path = join(stateDir, name);
    const usage = found.get(kind) ?? { kind, count: 0, bytes: 0 };
    const { bytes } = await sizeOf(path, bound);
    const isList = kind === "sandboxes" || kind === "snapshots" || kind === "sessions";
    const things = isList ? (await ifErrno(readdir(path), UNREACHABLE, [])).filter((each) => !each.startsWith(".")).length : 1;
    found.set(kind, { kind, count: usage.count + things, bytes: usage.bytes + bytes });
  }
  const kinds = [...found.values()].sort((a, b) => b.bytes - a.bytes);
  return { stateDir, kinds, bytes: kinds.reduce((sum, { bytes }) => sum + bytes, 0), isMinimum: bound.entries <= 0 };
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
