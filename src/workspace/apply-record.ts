import { randomBytes } from "node:crypto";
import { link, mkdir, open, readdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { z } from "zod";
import { CaissonError } from "../contract/error/error.ts";
import { ProcessIdentity as Applier } from "../contract/process-identity.ts";
import { isErrno, jsonOrNull } from "../lib/failures.ts";
import { lstatOrNull } from "../lib/paths.ts";
import { replaceFile } from "../lib/replace-file.ts";
import type { FolderTree } from "./folder-tree.ts";
import { STAGING_PREFIX } from "./protected-path.ts";

const RECORD_BYTES_MAX = 64 * 1024 * 1024;
/** Names of records during creation or removal. Leftovers are removed after `REMAINS_MS`. */
const REMAINS = /^\.(new|gone)-/;
const REMAINS_MS = 3_600_000;

/**
 * The name of the folder for new and old files. The folder is inside the user's folder, so that a rename can move the
 * files. Its name is unpredictable.
 */
export const StagingName = z.string().regex(new RegExp(`^\\${STAGING_PREFIX}-[0-9a-f]{32}$`));
const About = z.strictObject({ staging: StagingName, folder: z.string() });
/**
 * An apply to one folder. Its operations are recorded here in the state folder, and never read from the user's folder.
 */
export interface ApplyRecord {
  dir: string;
  /** The name of the folder for new and old files; null if a power failure left only the journal, which also has it. */
  staging: string | null;
}

export interface ApplierOptions {
  stateDir: string;
  self: Applier;
  alive: (applier: Applier) => boolean;
  /** Rolls back the apply of a dead process, then removes its record. */
  takeBack: (record: ApplyRecord) => Promise<void>;
}

/** Returns the folder with the apply records of a state folder. */
export const recordsIn = (stateDir: string) => join(stateDir, "applies");

/** Returns the name of the record of an apply to this folder. */
export function recordName(tree: FolderTree): string {
  const { device, inode } = tree.identity;
  return `${device}-${inode}`;
}

/** Returns null if a power failure left only the journal. */
export async function readAbout(dir: string): Promise<{ staging: string; folder: string } | null> {
  return About.safeParse(await readJson(join(dir, "apply.json"))).data ?? null;
}

/**
 * Reserves the folder for one apply at a time, after rolling back an apply whose process died. Throws `conflict` while
 * another apply is running.
 */
export async function openRecord(tree: FolderTree, options: ApplierOptions): Promise<{ dir: string; staging: string }> {
  const root = recordsIn(options.stateDir);
  await mkdir(root, { recursive: true, mode: 0o700 });
  const recoverDead = async (record: string) => {
    const alive = await recover(record, options);
    if (alive !== null) throw applyingNow(alive, tree.path);
  };
  await recoverOthers(root, tree, recoverDead);
  const dir = join(root, recordName(tree));
  for (;;) {
    const staging = `${STAGING_PREFIX}-${randomBytes(16).toString("hex")}`;
    if (await makeRecord(root, dir, { about: { staging, folder: tree.path }, self: options.self })) {
      return { dir, staging };
    }
    await recoverDead(dir);
  }
}

export const applyingNow = ({ pid }: Applier, folder: string) =>
  new CaissonError("conflict", `process ${pid} is applying changes to ${folder}`, { hint: "Try again when it has finished." });

/** A file in the records folder whose content changes with each rollback. */
const TAKEN_BACK = ".taken-back";

/** Changes the stamp before a rollback, so that concurrent readers of the folder read again. */
export async function markTakenBack(root: string): Promise<void> {
  await replaceFile(root, TAKEN_BACK, randomBytes(16).toString("hex"));
}

/** Returns a stamp that changes with each rollback. */
export async function takenBackStamp(root: string): Promise<string> {
  return await readFile(join(root, TAKEN_BACK), "utf8").catch((error: unknown) => {
    if (isErrno(error, "ENOENT")) return "";
    throw error;
  });
}

/** Removes a record atomically for every process. */
export async function removeRecord(dir: string): Promise<void> {
  const trash = join(dir, "..", `.gone-${randomBytes(8).toString("hex")}`);
  await rename(dir, trash);
  await rm(trash, { recursive: true, force: true });
}

/** Leaves a record to the next process, even while this one is alive. */
export async function abandonRecord(dir: string): Promise<void> {
  for (const name of await readdir(dir).catch(ifAbsent)) if (name.startsWith("applier-")) await rm(join(dir, name), { force: true });
}

/** Creates a record atomically. Returns false if one already exists. */
async function makeRecord(root: string, dir: string, content: { about: z.infer<typeof About>; self: Applier }): Promise<boolean> {
  const fresh = join(root, `.new-${randomBytes(8).toString("hex")}`);
  await mkdir(fresh, { mode: 0o700 });
  try {
    // Nothing needs a rollback yet after a power failure, so only the journal is synced to disk.
    await writeFile(join(fresh, "apply.json"), JSON.stringify(content.about), { mode: 0o600 });
    await writeFile(join(fresh, "applier-0.json"), JSON.stringify(content.self), { mode: 0o600 });
    await rename(fresh, dir);
    return true;
  } catch (error) {
    await rm(fresh, { recursive: true, force: true });
    if (isErrno(error, "ENOTEMPTY", "EEXIST")) return false;
    throw error;
  }
}

/**
 * Recovers other records of this folder. Device and inode numbers may change when the machine restarts, but the staging
 * folder identifies its record.
 */
async function recoverOthers(root: string, tree: FolderTree, recoverDead: (dir: string) => Promise<void>): Promise<void> {
  for (const name of await readdir(root)) {
    const dir = join(root, name);
    if (REMAINS.test(name)) {
      const found = lstatOrNull(dir);
      if (found !== null && Date.now() - found.mtimeMs > REMAINS_MS) await rm(dir, { recursive: true, force: true });
      continue;
    }
    const about = await readAbout(dir);
    if (about !== null && tree.stat(about.staging) !== null) await recoverDead(dir);
  }
}

/**
 * Claims the record of a dead process and rolls its apply back. If several processes try, one succeeds. Resolves with
 * the process that is applying, if it is alive.
 */
export async function recover(dir: string, options: Pick<ApplierOptions, "self" | "alive" | "takeBack">): Promise<Applier | null> {
  const about = await readAbout(dir);
  const names = await readdir(dir).catch(ifAbsent);
  const last = Math.max(-1, ...names.flatMap((name) => Number(/^applier-(\d+)\.json$/.exec(name)?.[1] ?? -1)));
  const other = Applier.safeParse(await readJson(join(dir, `applier-${last}.json`)));
  if (other.success && options.alive(other.data)) return other.data;
  if (!(await claim(dir, last + 1, options.self))) return null;
  const now = await readAbout(dir);
  if (about !== null && now !== null && now.staging !== about.staging) {
    // Another process recovered first and a new apply has started, so withdraw the claim on it.
    await rm(join(dir, `applier-${last + 1}.json`), { force: true });
    return null;
  }
  await options.takeBack({ dir, staging: now?.staging ?? null });
  return null;
}

function ifAbsent(error: unknown): [] {
  if (isErrno(error, "ENOENT")) return [];
  throw error;
}

/** Returns false if another process was faster or the record was removed. */
async function claim(dir: string, index: number, self: Applier): Promise<boolean> {
  const fresh = join(dir, `.claim-${randomBytes(8).toString("hex")}`);
  try {
    await writeFile(fresh, JSON.stringify(self), { mode: 0o600 });
    await link(fresh, join(dir, `applier-${index}.json`));
    return true;
  } catch (error) {
    if (isErrno(error, "EEXIST", "ENOENT")) return false;
    throw error;
  } finally {
    await rm(fresh, { force: true });
  }
}

/** Returns null if the file does not exist, or a power failure left it incomplete. Throws if it cannot be read. */
export async function readJson(path: string): Promise<unknown> {
  const found = lstatOrNull(path);
  if (found === null) return null;
  if (!found.isFile() || found.size > RECORD_BYTES_MAX)
    throw new CaissonError("too_large", `${path} is not a regular file of at most ${RECORD_BYTES_MAX} bytes`);
  try {
    return jsonOrNull(await readFile(path, "utf8"));
  } catch (error) {
    if (isErrno(error, "ENOENT")) return null;
    throw error;
  }
}

export async function writeDurably(path: string, content: string): Promise<void> {
  await using file = await open(path, "wx", 0o600);
  await file.writeFile(content);
  await file.sync();
}

export async function syncFolder(path: string): Promise<void> {
  await using folder = await open(path, "r");
  await folder.sync();
}
