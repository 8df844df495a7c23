import { constants, type Stats } from "node:fs";
import { type FileHandle, open, readdir } from "node:fs/promises";
import { ifErrno, UNREACHABLE } from "../lib/failures.ts";
import { lstatOrNull } from "../lib/paths.ts";
import { DEPTH_MAX, ENTRIES_MAX, isGitsOwn } from "./list-inside.ts";

/**
 * Visits every entry of a layer on the host, with its status, except git's own files. Opens entries relative to one
 * another without following links, because an agent that is still at work may plant one anywhere. Skips entries that
 * cannot be read.
 */
export async function walkLayer(layer: string, onEntry: (path: string, status: Stats) => void): Promise<void> {
  let left = ENTRIES_MAX;
  const visit = async (folder: string, handle: FileHandle, depth: number): Promise<void> => {
    for (const name of await readdir(`/proc/self/fd/${handle.fd}`)) {
      if (isGitsOwn(name) || left-- <= 0) continue;
      const path = folder === "" ? name : `${folder}/${name}`;
      const at = `/proc/self/fd/${handle.fd}/${name}`;
      const status = lstatOrNull(at);
      if (!status) continue;
      onEntry(path, status);
      if (!status.isDirectory() || depth >= DEPTH_MAX) continue;
      await using next = await ifErrno(open(at, constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW), UNREACHABLE, null);
      if (next) await visit(path, next, depth + 1);
    }
  };
  await using top = await ifErrno(open(layer, constants.O_RDONLY | constants.O_DIRECTORY), UNREACHABLE, null);
  if (top) await visit("", top, 0);
}

/**
 * Returns the inodes of a layer's folders by path. A different inode under the same name means that another folder was
 * moved there.
 */
export async function foldersOf(layer: string): Promise<Record<string, number>> {
  const folders: Record<string, number> = {};
  await walkLayer(layer, (path, status) => {
    if (status.isDirectory()) folders[path] = status.ino;
  });
  return folders;
}

/**
 * Returns the files that have neither moved nor changed: their folders are the same, and their change time is older.
 * The kernel sets that time, and code inside cannot forge it.
 */
export async function untouchedSince(
  layer: string,
  options: { sinceMs: number; folders: Readonly<Record<string, number>> },
): Promise<Set<string>> {
  const files = new Set<string>();
  const same = new Set([""]);
  await walkLayer(layer, (path, status) => {
    const parent = path.includes("/") ? path.slice(0, path.lastIndexOf("/")) : "";
    if (!same.has(parent)) return;
    if (!status.isDirectory()) {
      if (status.ctimeMs < options.sinceMs) files.add(path);
    } else if (options.folders[path] === status.ino) same.add(path);
  });
  return files;
}
