import { randomBytes } from "node:crypto";
import { link, mkdir, open, readdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { z } from "zod";
import { CaissonError } from "../contract/error.ts";
import { ProcessIdentity as Applier } from "../contract/process-identity.ts";
import { isErrno } from "../lib/is-errno.ts";
import { lstatOrNull } from "../lib/lstat-or-null.ts";
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

/**
 * Takes a folder for one apply at a time; what one that died left half done is taken back first. Throws `conflict`
 * while another is at work.
 */
export async function openRecord(tree: FolderTree, options: ApplierOptions): Promise<{ dir: string; staging: string }> {
  const root = join(options.stateDir, "applies");
  await mkdir(root, { recursive: true, mode: 0o700 });
  await recoverOthers(root, tree, options);
  const { device, inode } = tree.identity;
  const dir = join(root, `${device}-${inode}`);
  for (;;) {
    const staging = `${STAGING_PREFIX}-${randomBytes(16).toString("hex")}`;
    if (await makeRecord(root, dir, { about: { staging, folder: tree.path }, self: options.self })) {
      return { dir, staging };
    }
    await recover(dir, tree, options);
  }
}

/** Gone at once, for everybody. */
export async function removeRecord(dir: string): Promise<void> {
  const gone = join(dir, "..", `.gone-${randomBytes(8).toString("hex")}`);
  await rename(dir, gone);
  await rm(gone, { recursive: true, force: true });
}

/** Leaves a record to whoever comes next, also while this process lives. */
export async function abandonRecord(dir: string): Promise<void> {
  for (const name of await readdir(dir).catch(() => [])) if (name.startsWith("applier-")) await rm(join(dir, name), { force: true });
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
async function recoverOthers(root: string, tree: FolderTree, options: ApplierOptions): Promise<void> {
  for (const name of await readdir(root)) {
    const dir = join(root, name);
    if (REMAINS.test(name)) {
      const found = lstatOrNull(dir);
      if (found !== null && Date.now() - found.mtimeMs > REMAINS_MS) await rm(dir, { recursive: true, force: true });
      continue;
    }
    const about = About.safeParse(await readJson(join(dir, "apply.json")));
    if (about.success && tree.stat(about.data.staging) !== null) await recover(dir, tree, options);
  }
}

/** Takes over the record of a dead one and has it taken back. Of several that try, one does. */
async function recover(dir: string, tree: FolderTree, options: ApplierOptions): Promise<void> {
  const about = About.safeParse(await readJson(join(dir, "apply.json")));
  const names = await readdir(dir).catch(() => []);
  const last = Math.max(-1, ...names.flatMap((name) => Number(/^applier-(\d+)\.json$/.exec(name)?.[1] ?? -1)));
  const other = Applier.safeParse(await readJson(join(dir, `applier-${last}.json`)));
  if (other.success && options.alive(other.data))
    throw new CaissonError("conflict", `process ${other.data.pid} is applying changes to ${tree.path} just now`, { hint: "Wait for it." });
  if (!(await claim(dir, last + 1, options.self))) return;
  const now = About.safeParse(await readJson(join(dir, "apply.json")));
  if (about.success && now.success && now.data.staging !== about.data.staging) {
    // Somebody was faster, and another apply began in between: the claim is not on that one.
    await rm(join(dir, `applier-${last + 1}.json`), { force: true });
    return;
  }
  await options.takeBack({ dir, staging: now.success ? now.data.staging : null });
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

export async function readJson(path: string): Promise<unknown> {
  const found = lstatOrNull(path);
  if (!found?.isFile() || found.size > RECORD_BYTES_MAX) return null;
  try {
    return JSON.parse(await readFile(path, "utf8"));
  } catch {
    return null;
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
