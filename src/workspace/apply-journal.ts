import { dirname, join } from "node:path";
import { z } from "zod";
import { CaissonError } from "../contract/error/error.ts";
import { ignoring, isErrno } from "../lib/failures.ts";
import { lstatOrNull } from "../lib/paths.ts";
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

/** One operation on the folder. Each can be rolled back, whether or not it took place. */
const Operation = z.discriminatedUnion("kind", [
  /** Stores the old file. `replaced` means that a new file takes its place. */
  z.strictObject({ kind: z.literal("keep"), path: Path, kept: Kept, replaced: z.boolean() }),
  z.strictObject({ kind: z.literal("rmdir"), path: Path, mode: z.int(), uid: z.int(), gid: z.int() }),
  z.strictObject({ kind: z.literal("mkdir"), path: Path }),
  z.strictObject({ kind: z.literal("put"), path: Path, fresh: Kept, replaces: z.boolean() }),
]);
export type Operation = z.infer<typeof Operation>;

/**
 * The operations, with the staging folder's inode: records are found by inode, and the inode of a removed folder may be
 * reused by another.
 */
const Journal = z.strictObject({ staging: StagingName, inode: z.int(), operations: z.array(Operation) });

export interface Staging {
  tree: FolderTree;
  /** The path of the record in the state folder. */
  dir: string;
  /** The name of the staging folder in the user's folder. */
  name: string;
  /** The folder's owner, which also gets new files and folders if root applies. */
  owner: { uid: number; gid: number } | null;
}

/**
 * Reserves the folder for one apply at a time, after rolling back an apply whose process died. Throws `conflict` while
 * another apply is running.
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

export const stagedPath = (staging: Staging, name: string) => `${staging.name}/${name}`;

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
  // The state folder may be on another disk, so these changes must be on disk before `done` is.
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
      const backup = stagedPath(staging, operation.kept);
      // With a second link the old file stays in place until the new one replaces it, so it is never missing.
      if (operation.replaced && tryLink(tree, path, backup)) return;
      tree.rename(path, backup);
      return;
    }
    case "rmdir":
      // The folder stays if the user still has files in it.
      unless(["ENOTEMPTY", "EEXIST"], () => tree.rmdir(path));
      return;
    case "mkdir":
      tree.mkdir(path);
      if (owner) tree.chown(path, owner);
      return;
    case "put":
      tree.rename(stagedPath(staging, operation.fresh), path);
  }
}

/** Tries to create a second link. Some file systems do not support links, and some files cannot get a second one. */
function tryLink(tree: FolderTree, path: string, backup: string): boolean {
  return ignoring("the caller renames the file instead, or throws", () => tree.link(path, backup) === undefined) ?? false;
}

export async function takeBack({ tree, dir, name }: Staging): Promise<void> {
  await takeBackRecord(tree, { dir, staging: name });
}

/**
 * Rolls back an apply that did not finish. After a finished apply, only removes the leftovers. Idempotent, even if this
 * process is killed. If something blocks a rollback (a link in place of a folder), the next apply tries again.
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

/**
 * Returns null if nothing was done yet: the journal is written completely before the first operation. Throws
 * `conflict`.
 */
async function readJournal(dir: string): Promise<z.infer<typeof Journal> | null> {
  const found = await readJson(join(dir, "journal.json"));
  if (found === null) return null;
  const journal = Journal.safeParse(found);
  if (journal.success) return journal.data;
  throw new CaissonError("conflict", "another version of Caisson was interrupted while it applied changes", {
    hint: `Apply once with that version to roll it back. Its record is ${dir}.`,
  });
}

/** Removes only the files of an apply. Anything else belongs to the user and stays. */
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
      // If a link that the folder was to replace is still there, the folder was not created.
      if (tree.stat(path)?.isDirectory()) unless(["ENOENT", "ENOTDIR", "ENOTEMPTY", "EEXIST"], () => tree.rmdir(path));
      return;
    case "put":
      // The `keep` operation restores a replaced file. Otherwise we remove only the file that this operation created:
      // if that file is still in the staging folder, nothing was created, and a folder at the path is not ours.
      if (operation.replaces || tree.stat(`${staging}/${operation.fresh}`) !== null) return;
      if (tree.stat(path)?.isDirectory() === false) tree.unlink(path);
  }
}

/** Restores a removed folder, even one that a killed rollback had created without its mode and owner. */
function takeBackFolder(tree: FolderTree, { path, mode, uid, gid }: Extract<Operation, { kind: "rmdir" }>): void {
  unless(["EEXIST"], () => tree.mkdir(path));
  const found = tree.stat(path);
  if (!found?.isDirectory()) return;
  if ((found.mode & 0o7777) !== mode) tree.chmodFolder(path, mode);
  if (process.getuid?.() === 0) tree.chown(path, { uid, gid });
}

/** Creates missing parents: the user may have removed the folder since, but its stored file goes back anyway. */
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
