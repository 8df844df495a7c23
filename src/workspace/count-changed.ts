import { FolderTree } from "./folder-tree.ts";

/** Past these nothing more is looked at: there is much, and that is all that is asked. */
const FILES_MAX = 10_000;
const ENTRIES_MAX = 20_000;
const DEPTH_MAX = 100;

/** What programs keep for themselves and make again: nobody misses it. */
const caches: ReadonlySet<string> = new Set(["__pycache__", ".pytest_cache", ".mypy_cache", ".ruff_cache"]);
const refreshed: ReadonlySet<string> = new Set([".git/index", ".git/index.lock"]);

/**
 * How many files an overlay's upper layer holds, removed ones included, whether or not anything ignores them. The layer
 * is reached by descriptors that cannot leave it, and nothing in it is followed.
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
