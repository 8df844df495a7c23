import { realpathSync } from "node:fs";
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { CaissonError } from "../contract/error.ts";
import type { ProcessIdentity } from "../contract/process-identity.ts";
import { isErrno } from "../lib/is-errno.ts";
import { lstatOrNull } from "../lib/lstat-or-null.ts";
import { currentProcess, isProcessAlive } from "../sandbox/process-identity.ts";
import { isWithin } from "../sandbox/shared-folders.ts";
import { takeBackRecord } from "./apply-journal.ts";
import { applyingNow, readAbout, recordName, recordsIn, recover, takenBackStamp } from "./apply-record.ts";
import { FolderTree } from "./folder-tree.ts";

/** How long a look at a folder waits for an apply that is at work there. */
const APPLY_WAIT_MS_MAX = 30_000;
const APPLY_POLL_MS = 25;
/** Each further look is one that an apply came between. */
const LOOKS_MAX = 5;

export interface RecoveryOptions {
  stateDir: string;
  /** Whether an applier still lives. Default: as seen on this machine. */
  alive?: (applier: ProcessIdentity) => boolean;
}

interface SettledFolder {
  /** Another one once an apply was taken back since. */
  stamp: string;
  /** An apply was at work here, and was waited for. */
  waited: boolean;
}

/**
 * Reads a folder of the user's in a state between two applies: what a dead apply left half done is taken back first,
 * and a living one is waited for. When one came between, the folder is read again. Every verb that compares, copies or
 * shows such a folder goes through here. Throws `conflict`, and what `look` throws.
 */
export async function lookAtFolder<Result>(folder: string, options: RecoveryOptions, look: () => Promise<Result>): Promise<Result> {
  for (let looks = 1; ; looks++) {
    const before = await settleFolder(folder, options);
    const result = await look();
    const after = await settleFolder(folder, options);
    if (after.stamp === before.stamp && !after.waited) return result;
    if (looks === LOOKS_MAX)
      throw new CaissonError("conflict", `${folder} was changed by one apply after another while it was read`, { hint: "Try again." });
  }
}

/**
 * Takes back every apply of this state folder whose process died, and waits for one that is at work on this folder, on
 * one in it or around it. Throws `conflict` when that takes too long, or when something is in the way.
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

/** Resolves with a process that is at work on this folder. */
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
      // Another process that takes it back right now is waited for like one that applies.
      if (isOurs !== null) busy ??= applier ?? (lstatOrNull(dir) === null ? null : currentProcess());
    } catch (error) {
      // Somebody else's folder; who looks at that one hears of it.
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

/** Whether an apply to the folder of a record changes what is seen in this one. */
function concerns(folder: string, record: { name: string; folder: string | null }): "same" | "related" | null {
  using tree = openOrNull(folder);
  if (tree !== null && recordName(tree) === record.name) return "same";
  if (record.folder === null) return null;
  const [here, there] = [realPath(folder), realPath(record.folder)];
  return isWithin(here, there) || isWithin(there, here) ? "related" : null;
}

/** The folder of a record, as far as it is still that one. */
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
  return new CaissonError("conflict", `an interrupted apply to ${folder} cannot be taken back: ${why}`, {
    hint: "See that the folder can be written to and nothing is in the way, then try again.",
    cause,
  });
}
