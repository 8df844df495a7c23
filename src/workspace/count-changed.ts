import { FolderTree } from "./folder-tree.ts";

/** Counting stops here, because callers only need to know that there are many. */
const FILES_MAX = 10_000;
const ENTRIES_MAX = 20_000;
const DEPTH_MAX = 100;

/** Caches that programs can recreate. */
const caches: ReadonlySet<string> = new Set(["__pycache__", ".pytest_cache", ".mypy_cache", ".ruff_cache"]);
const refreshed: ReadonlySet<string> = new Set([".git/index", ".git/index.lock"]);

/**
 * Counts the files in an overlay's upper layer, including removed ones and whether or not an ignore file excludes them.
 * Reaches the layer by descriptors that cannot leave it, and follows nothing in it.
 */
export function countChanged(layer: string): { files: number; isMinimum: boolean } {
  using tree = new FolderTree(layer, { follow: false });
  const folders = [{ path: "", depth: 0 }];
  let files = 0;
  let entries = 0;
  for (let folder = folders.pop(); folder !== undefined; folder = folders.pop()) {
    for (const entry of tree.entries(folder.path)) {
      const path = folder.path === "" ? entry.name : `${folder.path}/${entry.name}`;
      if (caches.has(entry.name) || refreshed.has(path)) continue;
      if (!entry.isDirectory()) files += 1;
      else if (folder.depth < DEPTH_MAX) folders.push({ path, depth: folder.depth + 1 });
      entries += 1;
      if (files >= FILES_MAX || entries >= ENTRIES_MAX) return { files, isMinimum: true };
    }
  }
  return { files, isMinimum: false };
}
