import { createHash } from "node:crypto";
import { lstat, readdir } from "node:fs/promises";
import { join } from "node:path";
import { isErrno } from "../../lib/failures.ts";

/** What a container's writable layer contains: its names, and when each last changed. */
export interface UpperState {
  digest: string;
  /** When each entry last changed, whatever programs set as its times. Folders count only if nothing else changed. */
  files: number[];
  folders: number[];
}

/** Beyond this, looking would cost more than storing. */
const ENTRIES_MAX = 200_000;
const LOOKS_AT_ONCE = 64;

/**
 * Looks into the folder of a container's writable layer on the host, without opening any file in it. Null if it cannot
 * be read: the engine stores layers otherwise, or for another user.
 */
export async function upperState(folder: string | null): Promise<UpperState | null> {
  if (folder === null) return null;
  const state: UpperState = { digest: "", files: [], folders: [] };
  const lines: string[] = [];
  const left = [folder];
  const look = async (path: string) => {
    const status = await lstat(path, { bigint: true });
    lines.push(`${path}\0${status.ino}\0${status.ctimeNs}`);
    (status.isDirectory() ? state.folders : state.files).push(Number(status.ctimeNs / 1_000_000n));
    if (status.isDirectory()) left.push(path);
  };
  try {
    for (let parent = left.pop(); parent !== undefined; parent = left.pop()) {
      const names = await readdir(parent);
      if (lines.length + names.length > ENTRIES_MAX) return null;
      for (let at = 0; at < names.length; at += LOOKS_AT_ONCE)
        await Promise.all(names.slice(at, at + LOOKS_AT_ONCE).map((name) => look(join(parent, name))));
    }
  } catch (error) {
    // A program inside may have removed what we were about to look at.
    if (isErrno(error, "ENOENT", "ENOTDIR", "EACCES", "EPERM")) return null;
    throw error;
  }
  return { ...state, digest: createHash("sha256").update(lines.sort().join("\n")).digest("hex") };
}

/** Counts the entries that changed since a time. A removal may show only in the folder around it. */
export function countChanged({ files, folders }: UpperState, sinceMs: number | null): number {
  const count = (times: readonly number[]) => times.filter((ms) => sinceMs === null || ms >= sinceMs).length;
  return count(files) || count(folders);
}
