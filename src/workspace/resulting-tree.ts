import { CaissonError } from "../contract/error/error.ts";
import type { Change, FileSide } from "./change.ts";
import type { FolderTree } from "./folder-tree.ts";
import { isGitName } from "./protected-path.ts";

/** The number of links that the kernel follows. */
const LINKS_FOLLOWED_MAX = 40;
const ENTRIES_MAX = 1_000_000;

/** A folder as it is, or with changes applied. Checks use it to see what a later reader would see. */
export interface ResultingTree {
  /** Returns a link's target, "other" for anything else that exists, or null. */
  at(path: string): { target: Buffer } | "other" | null;
}

export function treeAsItIs(tree: FolderTree): ResultingTree {
  return {
    at(path) {
      const target = tree.readLink(path);
      return target !== null ? { target } : tree.stat(path) === null ? null : "other";
    },
  };
}

export function treeWith(tree: FolderTree, changes: readonly Change[]): ResultingTree {
  const sides = new Map<string, FileSide | null>();
  const folders = new Set<string>();
  for (const { path, from, after } of changes) {
    if (from !== null) sides.set(from, sides.get(from) ?? null);
    sides.set(path, after);
    if (after !== null) for (const parent of parentsOf(path)) folders.add(parent);
  }
  const now = treeAsItIs(tree);
  return {
    at(path) {
      if (folders.has(path)) return "other";
      const side = sides.get(path);
      if (side === undefined)
        return parentsOf(path).some((parent) => sides.get(parent) !== undefined && !folders.has(parent)) ? null : now.at(path);
      return side === null ? null : side.kind === "link" ? { target: side.content } : "other";
    },
  };
}

export function parentsOf(path: string): string[] {
  const parts = path.split("/");
  return parts.slice(0, -1).map((_, index) => parts.slice(0, parts.length - 1 - index).join("/"));
}

/**
 * Returns where a link in `folder` leads if that is not safe for a reader outside the sandbox; otherwise null. Missing
 * parts of the path count as folders, since they may be created later.
 */
export function leadsOut(
  tree: ResultingTree,
  folder: readonly string[],
  target: Buffer,
): "outside the folder" | "into git's own files" | null {
  const here = [...folder];
  const ahead = partsOf(target).reverse();
  if (target[0] === SLASH) return "outside the folder";
  let hops = 0;
  for (let part = ahead.pop(); part !== undefined; part = ahead.pop()) {
    if (part === "" || part === ".") continue;
    if (part === "..") {
      if (here.pop() === undefined) return "outside the folder";
      continue;
    }
    if (isGitName(part)) return "into git's own files";
    const found = lookUp(tree, [...here, part]);
    if (found === null || found === "other") {
      here.push(part);
      continue;
    }
    if (found.target[0] === SLASH) return "outside the folder";
    // The kernel does not follow such a chain either, so it leads nowhere.
    if (++hops > LINKS_FOLLOWED_MAX) return null;
    ahead.push(...partsOf(found.target).reverse());
  }
  return null;
}

const SLASH = 0x2f;
const partsOf = (target: Buffer) => target.toString("utf8").split("/");

/** Returns null for names that no file can have. */
function lookUp(tree: ResultingTree, parts: readonly string[]): ReturnType<ResultingTree["at"]> {
  return parts.some((part) => part.includes("\0")) ? null : tree.at(parts.join("/"));
}

/** A link that leads outside in the resulting tree, and either is new or did not lead outside before. */
export interface DangerousLink {
  path: string;
  target: string;
  leads: string;
}

/**
 * Finds every new link that leads outside, and every existing link that these changes redirect outside because part of
 * its path is or was a link. The user's own links that led outside before, or would once a missing part exists, are
 * left alone. Throws `too_large` if the folder has too many files to check.
 */
export function dangerousLinks(tree: FolderTree, changes: readonly Change[]): DangerousLink[] {
  const after = treeWith(tree, changes);
  const found: DangerousLink[] = [];
  const judge = (path: string, target: Buffer, spared: () => boolean) => {
    const leads = leadsOut(after, path.split("/").slice(0, -1), target);
    if (leads !== null && !spared()) found.push({ path, target: target.toString("utf8"), leads });
  };
  for (const { path, after: side } of changes) if (side?.kind === "link") judge(path, side.content, () => false);
  if (!changes.some((change) => change.before?.kind === "link" || change.after?.kind === "link")) return found;
  const now = treeAsItIs(tree);
  const changed = new Set(changes.flatMap(({ path, from }) => (from === null ? [path] : [path, from])));
  for (const { path, target } of linksOf(tree))
    if (!changed.has(path)) judge(path, target, () => leadsOut(now, path.split("/").slice(0, -1), target) !== null);
  return found;
}

export function* linksOf(tree: FolderTree): Generator<{ path: string; target: Buffer }> {
  const folders = [""];
  let left = ENTRIES_MAX;
  for (let folder = folders.pop(); folder !== undefined; folder = folders.pop()) {
    for (const entry of tree.exactEntries(folder)) {
      if (left-- <= 0)
        throw new CaissonError(
          "too_large",
          `${tree.path} has more than ${ENTRIES_MAX} files, too many to check where its links would lead`,
          {
            hint: "Apply the changes by name, without the links.",
          },
        );
      const path = folder === "" ? entry.name : `${folder}/${entry.name}`;
      if (entry.kind === "folder") folders.push(path);
      const target = entry.kind === "link" ? tree.readLink(path) : null;
      if (target !== null) yield { path, target };
    }
  }
}

/**
 * Returns the folders that would be repositories although they are not named .git: `git status` in one runs the
 * commands in its settings. Checks the resulting tree, so it does not matter how many steps created such a folder.
 * Checks only folders with a change.
 */
export function repositoriesWith(tree: FolderTree, changes: readonly Change[]): string[] {
  const after = treeWith(tree, changes);
  const names = new Set(changes.filter((change) => change.after !== null).flatMap(({ path }) => [path, ...parentsOf(path)].map(fold)));
  const folders = new Set(changes.flatMap(({ path, from }) => [...parentsOf(path), ...(from === null ? [] : parentsOf(from)), ""]));
  const has = (folder: string, name: string) => {
    const path = folder === "" ? name : `${folder}/${name}`;
    return names.has(fold(path)) || after.at(path) !== null;
  };
  return [...folders].filter(
    (folder) => has(folder, "HEAD") && ((has(folder, "objects") && has(folder, "refs")) || has(folder, "commondir")),
  );
}

/** Ignores case, because some file systems do. */
const fold = (path: string) => path.toLowerCase();
