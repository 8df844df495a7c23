import type { Stats } from "node:fs";
import { setImmediate as breathe } from "node:timers/promises";
import { CaissonError } from "../contract/error/error.ts";
import type { FileInfo, Sandbox } from "../sandbox/sandbox.ts";
import type { LeftOut } from "./change.ts";
import type { FolderTree } from "./folder-tree.ts";
import { DEPTH_MAX, ENTRIES_MAX, GITS_OWN, gitFolderOf, isGitsOwn, listInside } from "./list-inside.ts";

/** Files to check before yielding to other work. */
const LOOKS_AT_ONCE = 1000;

/** Returns the paths where two whole trees may differ, judged by kind, size, time and mode. */
export async function compareAll(options: {
  sandbox: Sandbox;
  lower: FolderTree;
  sinceMs: number;
}): Promise<{ paths: string[]; leftOut: LeftOut[] }> {
  const leftOut: LeftOut[] = [];
  const entries = await listInside(options.sandbox, "", { depth: DEPTH_MAX, leftOut });
  const inside = new Map<string, FileInfo>();
  let git: FileInfo | null = null;
  for (const entry of entries) {
    const own = entry.name.split("/").some(isGitsOwn);
    if (entry.kind === "directory") continue;
    if (!own) inside.set(entry.name, entry);
    else if (git === null && entry.modifiedMs > options.sinceMs) git = entry;
  }
  if (git) leftOut.push({ path: gitFolderOf(git.name), reason: GITS_OWN });
  const paths: string[] = [];
  let looked = 0;
  for (const path of await walkLower(options.lower, "")) {
    const entry = inside.get(path);
    inside.delete(path);
    if (++looked % LOOKS_AT_ONCE === 0) await breathe();
    if (!entry || !looksSame(options.lower.stat(path), entry)) {
      if (!entry || !isUsersEdit(options.lower.stat(path), entry, options.sinceMs)) paths.push(path);
    }
  }
  return { paths: [...paths, ...inside.keys()], leftOut };
}

/**
 * Returns whether only the user changed the file since the copy was made, and the file inside is unchanged. A snapshot
 * may store whole seconds only. A run in such a sandbox starts in the second after the copy, so a file whose time is in
 * the same second belongs to the copy.
 */
function isUsersEdit(found: Stats | null, entry: FileInfo, sinceMs: number): boolean {
  return found !== null && found.mtimeMs > sinceMs && entry.modifiedMs < (Math.floor(sinceMs / 1000) + 1) * 1000;
}

/** Compares metadata only, without reading files. */
export function looksSame(found: Stats | null, entry: FileInfo): boolean {
  if (!found || Math.trunc(found.mtimeMs) !== Math.trunc(entry.modifiedMs)) return false;
  if (entry.kind === "directory") return found.isDirectory();
  return (
    found.size === entry.sizeBytes && (found.mode & 0o111) === (entry.mode & 0o111) && found.isSymbolicLink() === (entry.kind === "link")
  );
}

/** Returns every file and link below a user's folder, without following links and without git's own files. */
export async function walkLower(lower: FolderTree, start: string): Promise<string[]> {
  const files: string[] = [];
  const folders = [start];
  for (let folder = folders.pop(); folder !== undefined; folder = folders.pop()) {
    for (const entry of lower.entries(folder)) {
      if (isGitsOwn(entry.name)) continue;
      const path = folder === "" ? entry.name : `${folder}/${entry.name}`;
      if (entry.isDirectory()) folders.push(path);
      else files.push(path);
    }
    if (files.length > ENTRIES_MAX) throw new CaissonError("too_large", `${lower.path} has more than ${ENTRIES_MAX} files`);
  }
  return files;
}
