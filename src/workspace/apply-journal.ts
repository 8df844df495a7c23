import { dirname, join } from "node:path";
import { z } from "zod";
import { CaissonError } from "../contract/error.ts";
import { isErrno } from "../lib/is-errno.ts";
import { lstatOrNull } from "../lib/lstat-or-null.ts";
import {
  type ApplierOptions,
  type ApplyRecord,
  abandonRecord,
  markTakenBack,
  openRecord,
  readJson,
  removeRecord,
  StagingName,
  syncFolder,
  writeDurably,
} from "./apply-record.ts";
import type { FolderTree } from "./folder-tree.ts";
import { forbidden } from "./protected-path.ts";

const Path = z.string().refine((path) => forbidden(path) === null);
const Kept = z.string().regex(/^(old|new)-\d+$/);

/** What is done to the folder, one by one; each can be taken back, whether it was done or not. */
const Operation = z.discriminatedUnion("kind", [
  /** The old file is kept; `replaced` tells that a new one takes its place. */
  z.strictObject({ kind: z.literal("keep"), path: Path, kept: Kept, replaced: z.boolean() }),
  z.strictObject({ kind: z.literal("rmdir"), path: Path, mode: z.int(), uid: z.int(), gid: z.int() }),
  z.strictObject({ kind: z.literal("mkdir"), path: Path }),
  z.strictObject({ kind: z.literal("put"), path: Path, fresh: Kept, replaces: z.boolean() }),
]);
export type Operation = z.infer<typeof Operation>;

/**
 * With the staging folder's number: a folder that was removed leaves its own number, by which records are found, to
 * another one.
 */
const Journal = z.strictObject({ staging: StagingName, inode: z.int(), operations: z.array(Operation) });

export interface Staging {
  tree: FolderTree;
  /** The record in the state folder. */
  dir: string;
  /** The folder in the user's own. */
  name: string;
  /** New files and folders of root's are given to whoever has the folder. */
  owner: { uid: number; gid: number } | null;
}

/**
 * Takes the folder for one apply at a time; what one that died left half done is taken back first. Throws `conflict`
 * while another is at work.
 */
export async function openStaging(tree: FolderTree, options: Omit<ApplierOptions, "takeBack">): Promise<Staging> {
  const { uid, gid } = tree.identity;
  const { dir, staging: name } = await openRecord(tree, { ...options, takeBack: (dead) => takeBackRecord(tree, dead) });
  try {
    tree.mkdir(name, 0o700);
  } catch (error) {
    await removeRecord(dir);
    throw error;
  }
  return { tree, dir, name, owner: process.getuid?.() === 0 ? { uid, gid } : null };
}

export const staged = (staging: Staging, name: string) => `${staging.name}/${name}`;

export async function perform(staging: Staging, operations: readonly Operation[], crashpoint: (name: string) => void): Promise<void> {
  const { tree, dir, name } = staging;
  tree.syncFolder(name);
  tree.syncFolder("");
  const journal = { staging: name, inode: tree.stat(name)?.ino ?? 0, operations };
  await writeDurably(join(dir, "journal.json"), JSON.stringify(journal));
  await syncFolder(dir);
  await syncFolder(dirname(dir));
  for (const [index, operation] of operations.entries()) {
    crashpoint(`apply:${index}`);
    performOne(staging, operation);
  }
  // The state folder may be on another disk: what it calls done must be on this one by then.
  const touched = new Set(operations.map(({ path }) => (dirname(path) === "." ? "" : dirname(path))));
  for (const path of touched) if (path === "" || tree.stat(path)?.isDirectory()) tree.syncFolder(path);
  crashpoint("apply:done:before");
  await writeDurably(join(dir, "done"), "");
  await syncFolder(dir);
  crashpoint("apply:done:after");
}

function performOne(staging: Staging, operation: Operation): void {
  const { tree, owner } = staging;
  const { path } = operation;
  switch (operation.kind) {
    case "keep": {
      const kept = staged(staging, operation.kept);
      // A second name keeps the old file where it is until the new one takes its place: nobody ever sees it missing.
      if (operation.replaced && tryLink(tree, path, kept)) return;
      tree.rename(path, kept);
      return;
    }
    case "rmdir":
      // Something of the user's own is still in it: then it stays.
      unless(["ENOTEMPTY", "EEXIST"], () => tree.rmdir(path));
      return;
    case "mkdir":
      tree.mkdir(path);
      if (owner) tree.chown(path, owner);
      return;
    case "put":
      tree.rename(staged(staging, operation.fresh), path);
  }
}

/** Not every file system has them, and not every file may be given one. */
function tryLink(tree: FolderTree, path: string, kept: string): boolean {
  try {
    tree.link(path, kept);
    return true;
  } catch {
    return false;
  }
}

export async function takeBack({ tree, dir, name }: Staging): Promise<void> {
  await takeBackRecord(tree, { dir, staging: name });
}

/**
 * Puts everything back as it was before an apply that did not finish; of one that did, only its remains are removed.
 * Idempotent, also when it is killed itself. What something in the way keeps from being put back (a link where a folder
 * was) waits for the next apply.
 */
export async function takeBackRecord(tree: FolderTree, { dir, staging }: ApplyRecord): Promise<void> {
  try {
    const done = lstatOrNull(join(dir, "done"));
    const journal = await readJournal(dir);
    const name = journal?.staging ?? staging;
    const found = name === null ? null : tree.stat(name);
    if (name !== null && found?.isDirectory()) {
      if (done === null && journal !== null && found.ino === journal.inode) {
        await markTakenBack(dirname(dir));
        for (const operation of journal.operations.toReversed()) takeBackOne(tree, name, operation);
      }
      removeStaging(tree, name);
    }
  } catch (error) {
    await abandonRecord(dir);
    throw error;
  }
  await removeRecord(dir);
}

/** Null when nothing was done yet: it is written whole before the first effect. Throws `conflict`. */
async function readJournal(dir: string): Promise<z.infer<typeof Journal> | null> {
  const found = await readJson(join(dir, "journal.json"));
  if (found === null) return null;
  const journal = Journal.safeParse(found);
  if (journal.success) return journal.data;
  throw new CaissonError("conflict", "another version of Caisson was interrupted while it applied changes", {
    hint: `Apply once with that version, which takes it back; its record is ${dir}.`,
  });
}

/** Only what applying itself puts there; anything else is somebody's, and stays. */
function removeStaging(tree: FolderTree, staging: string): void {
  for (const { name } of tree.entries(staging))
    if (Kept.safeParse(name).success) unless(["ENOENT", "EISDIR"], () => tree.unlink(`${staging}/${name}`));
  unless(["ENOENT", "ENOTDIR", "ENOTEMPTY", "EEXIST"], () => tree.rmdir(staging));
}

function takeBackOne(tree: FolderTree, staging: string, operation: Operation): void {
  const { path } = operation;
  switch (operation.kind) {
    case "keep":
      if (tree.stat(`${staging}/${operation.kept}`) === null) return;
      makeParents(tree, path);
      tree.rename(`${staging}/${operation.kept}`, path);
      return;
    case "rmdir":
      takeBackFolder(tree, operation);
      return;
    case "mkdir":
      // Where a link is still on the way, in whose place a folder was to come, nothing was made.
      if (tree.stat(path)?.isDirectory()) unless(["ENOENT", "ENOTDIR", "ENOTEMPTY", "EEXIST"], () => tree.rmdir(path));
      return;
    case "put":
      // The kept one takes its place by itself. Otherwise only what was put there goes: what waits in the staging
      // folder was not, and a folder is not ours.
      if (operation.replaces || tree.stat(`${staging}/${operation.fresh}`) !== null) return;
      if (tree.stat(path)?.isDirectory() === false) tree.unlink(path);
  }
}

/** Also one that was made again, but not finished, by a taking back that was killed. */
function takeBackFolder(tree: FolderTree, { path, mode, uid, gid }: Extract<Operation, { kind: "rmdir" }>): void {
  unless(["EEXIST"], () => tree.mkdir(path));
  const found = tree.stat(path);
  if (!found?.isDirectory()) return;
  if ((found.mode & 0o7777) !== mode) tree.chmodFolder(path, mode);
  if (process.getuid?.() === 0) tree.chown(path, { uid, gid });
}

/** The user may have removed a folder since; the file that was kept of it goes back all the same. */
function makeParents(tree: FolderTree, path: string): void {
  const parts = path.split("/");
  for (let depth = 1; depth < parts.length; depth++) unless(["EEXIST"], () => tree.mkdir(parts.slice(0, depth).join("/")));
}

function unless(codes: readonly string[], effect: () => void): void {
  try {
    effect();
  } catch (error) {
    if (!isErrno(error, ...codes)) throw error;
  }
}
