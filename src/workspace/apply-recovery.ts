import { realpathSync } from "node:fs";
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { CaissonError } from "../contract/error/error.ts";
import type { ProcessIdentity } from "../contract/process-identity.ts";
import { isErrno } from "../lib/failures.ts";
import { isWithin, lstatOrNull } from "../lib/paths.ts";
import { currentProcess, isProcessAlive } from "../sandbox/process-identity.ts";
import { takeBackRecord } from "./apply-journal.ts";
import { applyingNow, readAbout, recordName, recordsIn, recover, takenBackStamp } from "./apply-record.ts";
import { FolderTree } from "./folder-tree.ts";

/** How long a reader waits for a running apply to the folder. */
const APPLY_WAIT_MS_MAX = 30_000;
const APPLY_POLL_MS = 25;
/** A reader starts over each time an apply interferes, up to this many reads. */
const LOOKS_MAX = 5;

export interface RecoveryOptions {
  stateDir: string;
  /** Returns whether an applier is alive. Defaults to the view of this machine. */
  alive?: (applier: ProcessIdentity) => boolean;
}

interface SettledFolder {
  /** Changes with each rollback of an apply. */
  stamp: string;
  /** True if we waited for a running apply. */
  waited: boolean;
}

/**
 * Reads the user's folder in a state between applies: rolls back dead applies, waits for a running one, and reads again
 * if one interfered. Every verb that compares, copies or shows such a folder goes through here. Throws `conflict`, and
 * the errors of `look`.
 */
export async function lookAtFolder<Result>(folder: string, options: RecoveryOptions, look: () => Promise<Result>): Promise<Result> {
  for (let looks = 1; ; looks++) {
    const before = await settleFolder(folder, options);
    const result = await look();
    const after = await settleFolder(folder, options);
    if (after.stamp === before.stamp && !after.waited) return result;
    if (looks === LOOKS_MAX)
      throw new CaissonError("conflict", `several applies changed ${folder} while it was read`, { hint: "Try again." });
  }
}

/**
 * Rolls back every apply in this state folder whose process died, and waits for a running apply to this folder, to a
 * folder inside it or to a parent folder. Throws `conflict` if that takes too long or a rollback is blocked.
 */
export async function settleFolder(folder: string, options: RecoveryOptions): Promise<SettledFolder> {
  const deadline = performance.now() + APPLY_WAIT_MS_MAX;
  for (let waited = false; ; waited = true) {
    const applier = await recoverApplies(folder, options);
    if (applier === null) return { stamp: await takenBackStamp(recordsIn(options.stateDir)), waited };
    if (performance.now() >= deadline) throw applyingNow(applier, folder);
    await delay(APPLY_POLL_MS);
  }
}

/** Resolves with a process that is applying to this folder, or null. */
async function recoverApplies(folder: string, options: RecoveryOptions): Promise<ProcessIdentity | null> {
  const root = recordsIn(options.stateDir);
  let busy: ProcessIdentity | null = null;
  for (const name of await recordNames(root)) {
    const dir = join(root, name);
    const about = await readAbout(dir);
    const isOurs = concerns(folder, { name, folder: about?.folder ?? null });
    try {
      using tree = openRecorded(isOurs === "same" ? folder : (about?.folder ?? null), { name, staging: about?.staging ?? null });
      if (tree === null) continue;
      const takeBack = (record: Parameters<typeof takeBackRecord>[1]) => takeBackRecord(tree, record);
      const applier = await recover(dir, { self: currentProcess(), alive: options.alive ?? isProcessAlive, takeBack });
      // We also wait for a process that is rolling this apply back.
      if (isOurs !== null) busy ??= applier ?? (lstatOrNull(dir) === null ? null : currentProcess());
    } catch (error) {
      // The record concerns another folder. The readers of that folder get the error.
      if (isOurs === null) continue;
      throw cannotTakeBack(about?.folder ?? folder, error);
    }
  }
  return busy;
}

async function recordNames(root: string): Promise<string[]> {
  const names = await readdir(root).catch((error: unknown) => {
    if (isErrno(error, "ENOENT")) return [];
    throw error;
  });
  return names.filter((name) => !name.startsWith("."));
}

/** Returns how an apply to the record's folder affects readers of this one. */
function concerns(folder: string, record: { name: string; folder: string | null }): "same" | "related" | null {
  using tree = openOrNull(folder);
  if (tree !== null && recordName(tree) === record.name) return "same";
  if (record.folder === null) return null;
  const [here, there] = [realPath(folder), realPath(record.folder)];
  return isWithin(here, there) || isWithin(there, here) ? "related" : null;
}

/** Opens the record's folder, if it is still the same one. */
function openRecorded(folder: string | null, { name, staging }: { name: string; staging: string | null }): FolderTree | null {
  const tree = folder === null ? null : openOrNull(folder);
  if (tree === null) return null;
  if (recordName(tree) === name || (staging !== null && tree.stat(staging) !== null)) return tree;
  tree[Symbol.dispose]();
  return null;
}

function openOrNull(folder: string): FolderTree | null {
  try {
    return new FolderTree(folder);
  } catch (error) {
    if (isErrno(error, "ENOENT", "ENOTDIR", "EACCES", "ELOOP")) return null;
    throw error;
  }
}

function realPath(path: string): string {
  try {
    return realpathSync(path);
  } catch (error) {
    if (isErrno(error, "ENOENT", "ENOTDIR", "EACCES", "ELOOP")) return path;
    throw error;
  }
}

function cannotTakeBack(folder: string, cause: unknown): CaissonError {
  if (cause instanceof CaissonError && cause.code === "conflict") return cause;
  const why = cause instanceof Error ? cause.message : String(cause);
  return new CaissonError("conflict", `an interrupted apply to ${folder} cannot be rolled back: ${why}`, {
    hint: "Make sure that the folder is writable and nothing blocks its paths, then try again.",
    cause,
  });
}
