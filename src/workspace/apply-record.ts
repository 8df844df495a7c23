import { randomBytes } from "node:crypto";
import { link, mkdir, open, readdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { z } from "zod";
import { CaissonError } from "../contract/error.ts";
import { ProcessIdentity as Applier } from "../contract/process-identity.ts";
import { isErrno } from "../lib/is-errno.ts";
import { jsonOrNull } from "../lib/json-or-null.ts";
import { lstatOrNull } from "../lib/lstat-or-null.ts";
import { replaceFile } from "../lib/replace-file.ts";
import type { FolderTree } from "./folder-tree.ts";
import { STAGING_PREFIX } from "./protected-path.ts";

const RECORD_BYTES_MAX = 64 * 1024 * 1024;
/** A record being made or removed; one that its maker left behind is removed after so long. */
const REMAINS = /^\.(new|gone)-/;
const REMAINS_MS = 3_600_000;

/**
 * Where new and old files wait: a folder in the user's own, so that a rename moves them, under a name nobody could have
 * known.
 */
export const StagingName = z.string().regex(new RegExp(`^\\${STAGING_PREFIX}-[0-9a-f]{32}$`));
const About = z.strictObject({ staging: StagingName, folder: z.string() });
/**
 * An apply to one folder. What is to be done and undone is written here, in the state folder: nothing that lies in the
 * user's folder is ever obeyed.
 */
export interface ApplyRecord {
  dir: string;
  /**
   * The name of the folder that its maker put new and old files into; null when a power cut left only the journal,
   * which has it as well.
   */
  staging: string | null;
}

export interface ApplierOptions {
  stateDir: string;
  self: Applier;
  alive: (applier: Applier) => boolean;
  /** Undoes what a record of a dead one says, then removes the record. */
  takeBack: (record: ApplyRecord) => Promise<void>;
}

/** Where the records of a state folder are. */
export const recordsIn = (stateDir: string) => join(stateDir, "applies");

/** What the record of an apply to this folder is called. */
export function recordName(tree: FolderTree): string {
  const { device, inode } = tree.identity;
  return `${device}-${inode}`;
}

/** Null when a power cut left only the journal. */
export async function readAbout(dir: string): Promise<{ staging: string; folder: string } | null> {
  return About.safeParse(await readJson(join(dir, "apply.json"))).data ?? null;
}

/**
 * Takes a folder for one apply at a time; what one that died left half done is taken back first. Throws `conflict`
 * while another is at work.
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
  new CaissonError("conflict", `process ${pid} is applying changes to ${folder} just now`, { hint: "Wait for it." });

/** In the folder of the records; another text each time that an apply was taken back. */
const TAKEN_BACK = ".taken-back";

/** Before a folder goes back to what it was: who looks at it meanwhile has to look again. */
export async function markTakenBack(root: string): Promise<void> {
  await replaceFile(root, TAKEN_BACK, randomBytes(16).toString("hex"));
}

/** Changes whenever an apply was taken back. */
export async function takenBackStamp(root: string): Promise<string> {
  return await readFile(join(root, TAKEN_BACK), "utf8").catch((error: unknown) => {
    if (isErrno(error, "ENOENT")) return "";
    throw error;
  });
}

/** Gone at once, for everybody. */
export async function removeRecord(dir: string): Promise<void> {
  const gone = join(dir, "..", `.gone-${randomBytes(8).toString("hex")}`);
  await rename(dir, gone);
  await rm(gone, { recursive: true, force: true });
}

/** Leaves a record to whoever comes next, also while this process lives. */
export async function abandonRecord(dir: string): Promise<void> {
  for (const name of await readdir(dir).catch(ifAbsent)) if (name.startsWith("applier-")) await rm(join(dir, name), { force: true });
}

/** A record appears as a whole, or not at all: false when there is one. */
async function makeRecord(root: string, dir: string, content: { about: z.infer<typeof About>; self: Applier }): Promise<boolean> {
  const fresh = join(root, `.new-${randomBytes(8).toString("hex")}`);
  await mkdir(fresh, { mode: 0o700 });
  try {
    // Nothing has been done yet that would have to be undone after a power cut: only the journal is made to last.
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
 * The numbers of devices and folders may change with a restart of the machine; a staging folder of ours that is here
 * tells whose record it is.
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
 * Takes over the record of a dead one and has it taken back. Of several that try, one does. Resolves with the process
 * that is at work on it, if one is.
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
    // Somebody was faster, and another apply began in between: the claim is not on that one.
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

/** False when another was faster, or the record is gone. */
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

/** Null where there is no file, or one that a power cut left unfinished. Throws when it cannot be read. */
export async function readJson(path: string): Promise<unknown> {
  const found = lstatOrNull(path);
  if (found === null) return null;
  if (!found.isFile() || found.size > RECORD_BYTES_MAX)
    throw new CaissonError("too_large", `${path} is not a file of at most ${RECORD_BYTES_MAX} bytes`);
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
