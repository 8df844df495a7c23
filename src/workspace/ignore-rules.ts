import { existsSync, realpathSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { createPauses } from "../lib/pauses.ts";
import { isWithin } from "./change.ts";
import { FolderTree } from "./folder-tree.ts";
import { IGNORE_BYTES_MAX, type IgnorePattern, matchesPattern, namesOf, parseIgnorePatterns } from "./ignore-patterns.ts";
import { readLower } from "./read-side.ts";

export const IGNORE_FILE = ".gitignore";

export interface IgnoreRules {
  /** Whether a file that is not there yet would be left out by git. */
  ignores(path: string): Promise<boolean>;
  ignoresFolder(path: string): Promise<boolean>;
}

/**
 * The rules of `.gitignore` files: `read` gives the text of a folder's, or null. A deeper file wins over one above it,
 * in a file the last line, and nothing in a folder that is ignored can be taken back.
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
  /** What the rules say of this very path, not of the folders that it lies in. */
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
 * Those of a folder of the user's, with the files above it up to the top of its repository. Only the user's own files
 * count: one that an agent wrote or changed could hide what the agent did.
 */
export function openIgnoreRules(folder: string): IgnoreRules & Disposable {
  const real = existsSync(folder) ? realpathSync(folder) : folder;
  const root = repositoryOf(real) ?? real;
  const tree = new FolderTree(root);
  const prefix = relative(root, real);
  const read = async (at: string) => {
    const side = await readLower(tree, join(at, IGNORE_FILE)).catch(() => null);
    // Git follows no link here, either.
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

/** What to do about ignored files. */
export interface IgnoredFiles {
  /** Take them like any other. */
  includeIgnored?: boolean;
  /** Files and folders that were asked for by name: one that is ignored itself is meant. */
  paths?: readonly string[];
}

/**
 * Takes out the files that are ignored and new. One that was there before is the user's, or git's although it is
 * ignored, and what became of it is never hidden.
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
  const kept: string[] = [];
  for (const path of candidates) if (isWithin(path, named) || !(await rules.ignores(path)) || !(await options.isNew(path))) kept.push(path);
  return { kept, ignored: candidates.length - kept.length };
}
