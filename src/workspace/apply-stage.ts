import { type Operation, type Staging, stagedPath } from "./apply-journal.ts";
import type { Change, FileSide } from "./change.ts";
import { parentsOf } from "./resulting-tree.ts";

/**
 * Writes the new files beside the old ones, and returns the operations in an order that lets a file replace a folder
 * and vice versa.
 */
export async function stage(changes: readonly Change[], staging: Staging): Promise<Operation[]> {
  const keeps: Operation[] = [];
  const puts: Operation[] = [];
  const removedPaths: string[] = [];
  for (const [index, { path, from, before, after }] of changes.entries()) {
    const old = from ?? path;
    const replaced = from === null && before !== null && after !== null;
    if (before !== null) keeps.push({ kind: "keep", path: old, kept: `old-${index}`, replaced });
    if (before !== null && !replaced) removedPaths.push(old);
    if (after === null) continue;
    await writeFresh(staging, after, { target: stagedPath(staging, `new-${index}`), old: before === null ? null : old });
    puts.push({ kind: "put", path, fresh: `new-${index}`, replaces: replaced });
  }
  const needed = new Set(puts.flatMap(({ path }) => parentsOf(path)));
  const emptied = [...new Set(removedPaths.flatMap(parentsOf))].filter((path) => !needed.has(path)).sort(deepestFirst);
  const removals = emptied.flatMap((path) => folderToRemove(staging, path));
  const newFolders = [...needed].filter((path) => staging.tree.stat(path)?.isDirectory() !== true).sort((a, b) => deepestFirst(b, a));
  return [...keeps, ...removals, ...newFolders.map((path): Operation => ({ kind: "mkdir", path })), ...puts];
}

const deepestFirst = (a: string, b: string) => b.split("/").length - a.split("/").length;

function folderToRemove({ tree }: Staging, path: string): Operation[] {
  const found = tree.stat(path);
  return found === null ? [] : [{ kind: "rmdir", path, mode: found.mode & 0o7777, uid: found.uid, gid: found.gid }];
}

/**
 * Writes a new file with the old one's owner and permissions, changing only the execute bits. A file without an old one
 * gets the folder's owner. Never sets setuid or setgid bits.
 */
async function writeFresh({ tree, owner }: Staging, side: FileSide, about: { target: string; old: string | null }): Promise<void> {
  const old = about.old === null ? null : tree.stat(about.old);
  if (side.kind === "link") tree.symlink(side.content, about.target);
  else {
    await using file = await tree.createFile(about.target);
    await file.writeFile(side.content);
    await file.chmod(permissions(side, old === null || old.isSymbolicLink() ? null : old.mode));
    await file.sync();
  }
  if (owner) tree.chown(about.target, { uid: old?.uid ?? owner.uid, gid: old?.gid ?? owner.gid });
}

function permissions(side: FileSide, old: number | null): number {
  if (old === null) return side.mode & 0o777 & ~process.umask();
  const plain = old & 0o666;
  if (!(side.mode & 0o111)) return plain;
  return old & 0o111 ? old & 0o777 : plain | ((plain & 0o444) >> 2);
}
