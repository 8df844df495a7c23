import type { Stats } from "node:fs";
import { setImmediate as breathe } from "node:timers/promises";
import { ifErrnoSync, UNREACHABLE } from "../lib/failures.ts";
import { sameSide } from "./change.ts";
import { FolderTree } from "./folder-tree.ts";
import { type IgnoreRules, openIgnoreRules } from "./ignore-rules.ts";
import { DEPTH_MAX, isGitsOwn } from "./list-inside.ts";
import { ifUnreadable, readLower } from "./read-side.ts";
import { blobOf } from "./render-diff.ts";

/** Counting stops here, because callers only need to know that there are many. */
const FILES_MAX = 1000;
const ENTRIES_MAX = 20_000;
const READ_BYTES_MAX = 32 * 1024 * 1024;

export interface UnappliedCount {
  files: number;
  /** True if counting stopped early, so there may be more. */
  isMinimum: boolean;
}

/**
 * Counts the files of layers, topmost first, that differ from the folder below them, without a sandbox. This is an
 * estimate for lists that costs only a walk of the layers. For a folder that the agent moved or replaced, it counts the
 * files in the layers; `findChanges` is exact. Reaches the layers by descriptors that cannot leave them, and follows
 * nothing in them. Returns null if all layers or the folder are missing, or if one cannot be opened.
 */
export async function countUnapplied(options: {
  lower: string;
  layers: readonly string[];
  /**
   * Git blob names of the contents that were applied elsewhere from here, by path; empty for a file that was removed
   * there.
   */
  applied?: ReadonlyMap<string, string>;
}): Promise<UnappliedCount | null> {
  const lower = openTree(options.lower, { follow: true });
  const layers = options.layers.flatMap((path) => openTree(path, { follow: false }) ?? []);
  try {
    if (lower === null || layers.length === 0) return null;
    using rules = openIgnoreRules(options.lower);
    return await walk({ lower, layers, rules, applied: options.applied ?? new Map() });
  } finally {
    lower?.[Symbol.dispose]();
    for (const layer of layers) layer[Symbol.dispose]();
  }
}

function openTree(path: string, options: { follow: boolean }): FolderTree | null {
  return ifErrnoSync(() => new FolderTree(path, options), UNREACHABLE, null);
}

interface Sides {
  lower: FolderTree;
  layers: readonly FolderTree[];
  rules: IgnoreRules;
  applied: ReadonlyMap<string, string>;
}

async function walk(sides: Sides): Promise<UnappliedCount> {
  const bounds = { entries: ENTRIES_MAX, bytes: READ_BYTES_MAX };
  const folders = [{ path: "", depth: 0, layers: sides.layers }];
  let files = 0;
  for (let folder = folders.pop(); folder !== undefined; folder = folders.pop()) {
    const seen = new Set<string>();
    for (const [at, layer] of folder.layers.entries()) {
      for (const entry of layer.entries(folder.path)) {
        // A layer above decides.
        if (isGitsOwn(entry.name) || seen.has(entry.name)) continue;
        seen.add(entry.name);
        const path = folder.path === "" ? entry.name : `${folder.path}/${entry.name}`;
        if (entry.isDirectory()) {
          // The files of a new, ignored folder do not count.
          const isIgnored = statOf(sides.lower, path) === null && (await sides.rules.ignoresFolder(path));
          const below = { path, depth: folder.depth + 1, layers: foldersFrom(folder.layers.slice(at), path) };
          if (!isIgnored && folder.depth < DEPTH_MAX) folders.push(below);
        } else if (await differs(path, layer, sides, bounds)) files += 1;
        if (--bounds.entries % 100 === 0) await breathe();
        if (bounds.entries <= 0 || files >= FILES_MAX) return { files, isMinimum: true };
      }
    }
  }
  return { files, isMinimum: false };
}

/** Returns the layers that have a folder here, down to one that has a file instead. */
function foldersFrom(layers: readonly FolderTree[], path: string): FolderTree[] {
  const found: FolderTree[] = [];
  for (const layer of layers) {
    const status = statOf(layer, path);
    if (status !== null && !status.isDirectory()) break;
    if (status !== null) found.push(layer);
  }
  return found;
}

async function differs(path: string, layer: FolderTree, { lower, rules, applied }: Sides, bounds: { bytes: number }): Promise<boolean> {
  const before = statOf(lower, path);
  const after = statOf(layer, path);
  if (after === null) return false;
  // An overlay marks a removed file with a character device.
  if (after.isCharacterDevice()) return before !== null && applied.get(path) !== "";
  if (applied.has(path) && after.size <= bounds.bytes) {
    bounds.bytes -= after.size;
    const side = await readLower(layer, path).catch(ifUnreadable);
    if (side !== null && applied.get(path) === blobOf(side.content)) return false;
  }
  if (before === null) return !(await rules.ignores(path));
  if (before.size !== after.size || !sameKind(before, after)) return true;
  bounds.bytes -= before.size + after.size;
  // After an apply both have the same content. If they are too large to compare, the file counts as different.
  if (bounds.bytes < 0) return true;
  const sides = await Promise.all([lower, layer].map((tree) => readLower(tree, path).catch(ifUnreadable)));
  return !sameSide(sides[0] ?? null, sides[1] ?? null);
}

function statOf(tree: FolderTree, path: string): Stats | null {
  return ifErrnoSync(() => tree.stat(path), UNREACHABLE, null);
}

const sameKind = (a: Stats, b: Stats) =>
  a.isFile() === b.isFile() && a.isSymbolicLink() === b.isSymbolicLink() && (a.isSymbolicLink() || (a.mode & 0o111) === (b.mode & 0o111));
