import type { Stats } from "node:fs";
import { lstat, readdir } from "node:fs/promises";
import { join } from "node:path";
import { ifErrno, UNREACHABLE } from "../../lib/failures.ts";

/** The most entries to measure in total. Further entries do not count, and the answer says so. */
const ENTRIES_MAX = 300_000;
const LOOKS_AT_ONCE = 64;

/** How many more entries to look at. */
export interface Bound {
  entries: number;
}

export const newBound = (): Bound => ({ entries: ENTRIES_MAX });

/**
 * Returns the disk usage of a file or folder, and the part of it in files with further names, which may be elsewhere.
 * Does not follow links; a folder that cannot be read counts without its content.
 */
export async function sizeOf(path: string, bound: Bound = newBound()): Promise<{ bytes: number; linkedBytes: number }> {
  const top = await ifErrno(lstat(path), UNREACHABLE, null);
  const linked = new Map<string, { bytes: number; unseen: number }>();
  let bytes = 0;
  const add = (stats: Stats | null) => {
    if (stats === null) return;
    const file = stats.nlink > 1 && !stats.isDirectory() ? `${stats.dev}:${stats.ino}` : null;
    const known = file === null ? undefined : linked.get(file);
    if (known !== undefined) known.unseen -= 1;
    else if (file !== null) linked.set(file, { bytes: stats.blocks * 512, unseen: stats.nlink - 1 });
    else bytes += stats.blocks * 512;
  };
  add(top);
  const folders = top?.isDirectory() ? [path] : [];
  for (let folder = folders.pop(); folder !== undefined && bound.entries > 0; folder = folders.pop()) {
    const at = folder;
    const names = await ifErrno(readdir(at), UNREACHABLE, []);
    for (let first = 0; first < names.length && bound.entries > 0; first += LOOKS_AT_ONCE) {
      const some = names.slice(first, first + LOOKS_AT_ONCE).map((name) => join(at, name));
      bound.entries -= some.length;
      for (const [index, stats] of (await Promise.all(some.map((each) => ifErrno(lstat(each), UNREACHABLE, null)))).entries()) {
        add(stats);
        if (stats?.isDirectory()) folders.push(some[index] as string);
      }
    }
  }
  let linkedBytes = 0;
  for (const { bytes: fileBytes, unseen } of linked.values()) {
    bytes += fileBytes;
    if (unseen > 0) linkedBytes += fileBytes;
  }
  return { bytes, linkedBytes };
}
