import { existsSync, realpathSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { createPauses } from "../lib/pauses.ts";
import { isBelowAny } from "./change.ts";
import { FolderTree } from "./folder-tree.ts";
import { IGNORE_BYTES_MAX, type IgnorePattern, matchesPattern, namesOf, parseIgnorePatterns } from "./ignore-patterns.ts";
import { ifUnreadable, readLower } from "./read-side.ts";

export const IGNORE_FILE = ".gitignore";

export interface IgnoreRules {
  /** Returns whether git would leave out a file that does not exist yet. */
  ignores(path: string): Promise<boolean>;
  ignoresFolder(path: string): Promise<boolean>;
}

/**
 * Creates rules from `.gitignore` files; `read` returns the text of a folder's file, or null. A deeper file overrides
 * one above it, the last line in a file wins, and nothing in an ignored folder can be included again.
 */
export function createIgnoreRules(read: (folder: string) => Promise<string | null>): IgnoreRules {
  const patterns = new Map<string, Promise<readonly IgnorePattern[]>>();
  const folders = new Map<string, Promise<boolean>>([["", Promise.resolve(false)]]);
  const pause = createPauses();
  const patternsOf = (folder: string): Promise<readonly IgnorePattern[]> => {
    const known = patterns.get(folder) ?? read(folder).then((text) => parseIgnorePatterns(text ?? ""));
    patterns.set(folder, known);
    return known;
  };
  /** Returns what the rules say about this path alone, not about its parent folders. */
  const isNamed = async (path: string, isFolder: boolean): Promise<boolean> => {
    for (let folder = parentOf(path); ; folder = parentOf(folder)) {
      const within = folder === "" ? path : path.slice(folder.length + 1);
      const names = namesOf(within);
      const last = (await patternsOf(folder)).findLast((pattern) => matchesPattern(pattern, names, { isFolder }));
      await pause();
      if (last !== undefined) return !last.isNegated;
      if (folder === "") return false;
    }
  };
  const ignoresFolder = (path: string): Promise<boolean> => {
    const known = folders.get(path) ?? ignoresFolder(parentOf(path)).then((above) => above || isNamed(path, true));
    folders.set(path, known);
    return known;
  };
  return { ignoresFolder, ignores: async (path) => (await ignoresFolder(parentOf(path))) || (await isNamed(path, false)) };
}

const parentOf = (path: string) => (path.includes("/") ? path.slice(0, path.lastIndexOf("/")) : "");

/**
 * Opens the rules of a user's folder, including the files above it up to the root of its repository. Uses only the
 * user's own files, since an agent could write an ignore file to hide its changes.
 */
export function openIgnoreRules(folder: string): IgnoreRules & Disposable {
  const real = existsSync(folder) ? realpathSync(folder) : folder;
  const root = repositoryOf(real) ?? real;
  const tree = new FolderTree(root);
  const prefix = relative(root, real);
  const read = async (at: string) => {
    const side = await readLower(tree, join(at, IGNORE_FILE)).catch(ifUnreadable);
    // Git does not follow links here either.
    return side?.kind === "file" ? side.content.toString("utf8", 0, IGNORE_BYTES_MAX) : null;
  };
  const rules = createIgnoreRules(read);
  return {
    ignores: (path) => rules.ignores(join(prefix, path)),
    ignoresFolder: (path) => rules.ignoresFolder(join(prefix, path)),
    [Symbol.dispose]: () => tree[Symbol.dispose](),
  };
}

function repositoryOf(folder: string): string | null {
  for (let at = folder; ; at = dirname(at)) {
    if (existsSync(join(at, ".git"))) return at;
    if (at === dirname(at)) return null;
  }
}

/** How to treat ignored files. */
export interface IgnoredFiles {
  /** Includes them like all others. */
  includeIgnored?: boolean | undefined;
  /** Named files and folders. Naming an ignored one includes it. */
  paths?: string[] | undefined;
}

/**
 * Removes new, ignored files from the candidates. An ignored file that existed before belongs to the user or to git, so
 * its changes are never hidden.
 */
export async function withoutIgnored(
  candidates: readonly string[],
  options: IgnoredFiles & { rules: IgnoreRules; isNew: (path: string) => Promise<boolean> },
): Promise<{ kept: string[]; ignored: number }> {
  const { rules, paths = [], includeIgnored = false } = options;
  if (includeIgnored) return { kept: [...candidates], ignored: 0 };
  const named: string[] = [];
  const all = new Set(candidates);
  for (const path of paths.map((each) => each.replace(/\/$/, "")))
    if (path !== "." && (all.has(path) || (await rules.ignoresFolder(path)))) named.push(path);
  const remainingPaths: string[] = [];
  for (const path of candidates)
    if (isBelowAny(path, named) || !(await rules.ignores(path)) || !(await options.isNew(path))) remainingPaths.push(path);
  return { kept: remainingPaths, ignored: candidates.length - remainingPaths.length };
}
