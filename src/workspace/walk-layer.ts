import { constants, type Stats } from "node:fs";
import { type FileHandle, open, readdir } from "node:fs/promises";
import { lstatOrNull } from "../lib/lstat-or-null.ts";
import { DEPTH_MAX, ENTRIES_MAX, isGitsOwn } from "./list-inside.ts";

/**
 * Everything in a layer of the host's but git's own, with what the kernel says of it. Opened relative to one another
 * and without following links: an agent that is still at work may put one anywhere. What cannot be read is left out.
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
      await using next = await open(at, constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW).catch(() => null);
      if (next) await visit(path, next, depth + 1);
    }
  };
  await using top = await open(layer, constants.O_RDONLY | constants.O_DIRECTORY).catch(() => null);
  if (top) await visit("", top, 0);
}

/** The folders of a layer by path, each as the inode it is: another one under the same name was moved there. */
export async function foldersOf(layer: string): Promise<Record<string, number>> {
  const folders: Record<string, number> = {};
  await walkLayer(layer, (path, status) => {
    if (status.isDirectory()) folders[path] = status.ino;
  });
  return folders;
}

/**
 * Files that are what and where they were: in the same folders, and not changed since. The kernel keeps that time, and
 * nobody inside can set it.
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
