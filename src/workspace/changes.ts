import { existsSync, realpathSync } from "node:fs";
import { CaissonError } from "../contract/error/error.ts";
import type { HidingRules } from "../contract/workspace/workspace-guard.ts";
import { ignore } from "../lib/failures.ts";
import { WORKSPACE } from "../sandbox/path.ts";
import type { Sandbox } from "../sandbox/sandbox.ts";
import { viewState } from "../sandbox/state-places.ts";
import { type Change, type Changes, type FileSide, type LeftOut, pathsBelow, sameSide } from "./change.ts";
import { compareAll } from "./compare-all.ts";
import { compareLayers } from "./compare-layers.ts";
import { findCredentialFiles } from "./credential-files.ts";
import { FolderTree } from "./folder-tree.ts";
import { type IgnoredFiles, type IgnoreRules, openIgnoreRules, withoutIgnored } from "./ignore-rules.ts";
import { readInside, readLower, UNNAMEABLE } from "./read-side.ts";
import { pairRenames } from "./renames.ts";
import { blobOf } from "./render-diff.ts";

/** Limits of a diff: beyond them it fails instead of filling the memory. */
const CHANGED_FILES_MAX = 20_000;
const TOTAL_BYTES_MAX = 512 * 1024 * 1024;
const READS_AT_ONCE = 16;

/** Where the two sides of a diff may differ, and how to read them. */
export interface Comparison {
  candidates: readonly string[];
  leftOut: LeftOut[];
  /** The rules in the user's own ignore files. */
  rules: IgnoreRules;
  ignoring?: IgnoredFiles;
  /** Reads the old side; null if the file does not exist. `after` reads the new side. */
  before: (path: string) => Promise<FileSide | null>;
  after: (path: string) => Promise<FileSide | null>;
  /** Returns whether the user changed the old side after the workspace was created from it. */
  changedOutside?: (path: string, before: FileSide) => Promise<boolean>;
}

/**
 * Finds the differences between the user's folder and the workspace inside.
 *
 * The old side is read on the host from the user's folder, without following links; the guest reads the new side.
 * `layers` are the host folders that collect the changes, topmost first. We use only their names and times. They show
 * where to look, so the cost of a diff depends on the changes, not on the size of the folder. Without them everything
 * is compared, and `sinceMs` is when the workspace was copied.
 *
 * `stateDir` is never visible inside, so it has no changes. The same applies to hidden files, which may appear inside
 * as empty files. `applied` has the git blob names of contents that were applied to the folder from here, which do not
 * count as the user's changes. New files that the user's own `.gitignore` files exclude are left out and counted,
 * unless `ignoring` specifies otherwise.
 *
 * Throws `too_large` beyond a limit, and the sandbox's errors.
 */
export async function findChanges(options: {
  sandbox: Sandbox;
  lower: string;
  layers: readonly string[] | null;
  sinceMs: number;
  stateDir: string;
  applied?: ReadonlyMap<string, string>;
  /** Older entries of the layers were copied at some time since `sinceMs`. */
  copiedAtMs?: number;
  hiding?: HidingRules;
  /** Paths that were hidden inside, whichever rule hid them. */
  hidden?: readonly string[];
  ignoring?: IgnoredFiles;
}): Promise<Changes> {
  using lower = openLower(options.lower);
  using rules = openIgnoreRules(options.lower);
  const { paths, leftOut, madeAtMs: seenAtMs } = await compare({ ...options, lower });
  const { copiedAtMs = 0, sinceMs } = options;
  const madeAtMs = (path: string) => (seenAtMs(path) <= copiedAtMs ? sinceMs : seenAtMs(path));
  const isHidden = pathsBelow([...(await hiddenPlaces(options)), ...(options.hidden ?? [])]);
  const isSeen = (path: string) => !isHidden(path);
  return await readChanges({
    candidates: paths.filter(isSeen),
    leftOut: leftOut.filter(({ path }) => isSeen(path)),
    rules,
    ...(options.ignoring && { ignoring: options.ignoring }),
    before: (path) => readLower(lower, path),
    after: (path) => readInside(options.sandbox, `${WORKSPACE}/${path}`),
    async changedOutside(path, before) {
      const found = lower.stat(path);
      return found !== null && found.mtimeMs > madeAtMs(path) && options.applied?.get(path) !== blobOf(before.content);
    },
  });
}

export async function hiddenPlaces({
  lower,
  stateDir,
  hiding,
}: {
  lower: string;
  stateDir: string;
  hiding?: HidingRules;
}): Promise<string[]> {
  if (!existsSync(lower)) return [];
  const places = viewState(stateDir).placesIn(realpathSync(lower), { mountsBelow: true });
  return [...places.map(({ path }) => path), ...(hiding === undefined ? [] : (await findCredentialFiles(lower, hiding)).paths)];
}

function openLower(path: string): FolderTree {
  try {
    return new FolderTree(path);
  } catch (cause) {
    throw new CaissonError("not_found", `the folder ${path} no longer exists or cannot be opened`, { cause });
  }
}

interface Compared {
  paths: string[];
  leftOut: LeftOut[];
  /** Returns when the workspace got its own copy of a file. Until then the agent saw the user's file. */
  madeAtMs: (path: string) => number;
}

async function compare(options: {
  sandbox: Sandbox;
  lower: FolderTree;
  layers: readonly string[] | null;
  sinceMs: number;
}): Promise<Compared> {
  const everything = async () => ({ ...(await compareAll(options)), madeAtMs: () => options.sinceMs });
  if (options.layers === null) return await everything();
  try {
    return await compareLayers({ ...options, layers: options.layers });
  } catch (error) {
    // Without root, the layer may contain folders that only the sandbox's user may read. Then we compare everything
    // from inside.
    const code = (error as NodeJS.ErrnoException).code;
    if (code === "EACCES" || code === "EPERM" || code === "ENOENT") return await everything();
    throw error;
  }
}

/** Reads both sides of every candidate and returns those that differ, sorted by path, with moves paired. */
export async function readChanges(comparison: Comparison): Promise<Changes> {
  const { leftOut, rules, before } = comparison;
  const isNew = async (path: string) => (await ignore(before(path), "an unreadable file does exist")) === null;
  const { kept: candidates, ignored } = await withoutIgnored(comparison.candidates, { ...comparison.ignoring, rules, isNew });
  if (candidates.length > CHANGED_FILES_MAX) {
    throw new CaissonError("too_large", `${candidates.length} files changed; a diff shows at most ${CHANGED_FILES_MAX}`, {
      hint: "Did the agent leave a dependency folder behind? Let a run in the same session remove it.",
    });
  }
  const budget = { left: TOTAL_BYTES_MAX };
  const changes: Change[] = [];
  for (let at = 0; at < candidates.length; at += READS_AT_ONCE) {
    const part = candidates.slice(at, at + READS_AT_ONCE);
    for (const change of await Promise.all(part.map((path) => readBoth(path, comparison, budget)))) if (change) changes.push(change);
  }
  changes.sort((a, b) => (a.path < b.path ? -1 : 1));
  return { changes: pairRenames(changes), leftOut: leftOut.sort((a, b) => (a.path < b.path ? -1 : 1)), ignored };
}

/** Returns null if both sides are equal, or if one cannot be read, in which case the path is added to `leftOut`. */
async function readBoth(path: string, comparison: Comparison, budget: { left: number }): Promise<Change | null> {
  try {
    const before = await comparison.before(path);
    const after = await comparison.after(path);
    if (sameSide(before, after)) {
      if (path.includes(UNNAMEABLE)) comparison.leftOut.push({ path, reason: "its name is not UTF-8" });
      return null;
    }
    budget.left -= (before?.content.length ?? 0) + (after?.content.length ?? 0);
    if (budget.left < 0) throw new CaissonError("too_large", `the changed files exceed ${TOTAL_BYTES_MAX} bytes in total`);
    const changedOutside = before !== null && (await comparison.changedOutside?.(path, before)) === true;
    return { path, from: null, before, after, changedOutside };
  } catch (error) {
    if (!(error instanceof CaissonError) || !["unsupported", "too_large", "denied"].includes(error.code) || budget.left < 0) throw error;
    comparison.leftOut.push({ path, reason: error.message });
    return null;
  }
}
