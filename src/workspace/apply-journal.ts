import { chmod, lchown, link, lstat, mkdir, open, readFile, rename, rm, rmdir, unlink } from "node:fs/promises";
import { join } from "node:path";
import { z } from "zod";
import { CaissonError } from "../contract/error.ts";
import { Owner as Applier } from "../sandbox/store.ts";
import { forbidden, STAGING_NAME } from "./protected-path.ts";

const JOURNAL_BYTES_MAX = 64 * 1024 * 1024;

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

export interface Staging {
  folder: string;
  dir: string;
  /** New files and folders of root's are given to whoever has the folder. */
  owner: { uid: number; gid: number } | null;
}

/** Takes the folder for one apply at a time; what one that died left half done is taken back first. Throws `conflict` while another is at work. */
export async function openStaging(folder: string, options: { self: Applier; alive: (applier: Applier) => boolean }): Promise<Staging> {
  const dir = join(folder, STAGING_NAME);
  const { uid, gid } = await lstat(folder);
  const staging = { folder, dir, owner: process.getuid?.() === 0 ? { uid, gid } : null };
  for (;;) {
    try {
      await mkdir(dir, { mode: 0o700 });
      await writeDurably(join(dir, "applier.json"), JSON.stringify(options.self));
      return staging;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
    }
    if (!(await lstat(dir)).isDirectory()) throw new CaissonError("conflict", `${dir} is in the way.`, { hint: "Remove it." });
    const other = Applier.safeParse(await readJson(join(dir, "applier.json")));
    if (other.success && options.alive(other.data))
      throw new CaissonError("conflict", `Process ${other.data.pid} is applying changes to ${folder} just now.`, { hint: "Wait for it." });
    await takeBack(staging);
  }
}

export async function perform(staging: Staging, operations: readonly Operation[], crashpoint: (name: string) => void): Promise<void> {
  await writeDurably(join(staging.dir, "journal.json"), JSON.stringify(operations));
  await syncFolder(staging.dir);
  for (const [index, operation] of operations.entries()) {
    crashpoint(`apply:${index}`);
    await performOne(staging, operation);
  }
  crashpoint("apply:done:before");
  await writeDurably(join(staging.dir, "done"), "");
  await syncFolder(staging.dir);
  crashpoint("apply:done:after");
}

async function performOne({ folder, dir, owner }: Staging, operation: Operation): Promise<void> {
  const target = join(folder, operation.path);
  switch (operation.kind) {
    case "keep": {
      const kept = join(dir, operation.kept);
      // A second name keeps the old file where it is until the new one takes its place: nobody ever sees it missing.
      if (
        operation.replaced &&
        (await link(target, kept).then(
          () => true,
          () => false,
        ))
      )
        return;
      await rename(target, kept);
      return;
    }
    case "rmdir":
      // Something of the user's own is still in it: then it stays.
      await rmdir(target).catch((error: NodeJS.ErrnoException) => {
        if (error.code !== "ENOTEMPTY" && error.code !== "EEXIST") throw error;
      });
      return;
    case "mkdir": {
      await mkdir(target);
      if (owner) await lchown(target, owner.uid, owner.gid);
      return;
    }
    case "put":
      await rename(join(dir, operation.fresh), target);
  }
}

/** Puts everything back as it was before an apply that did not finish; of one that did, only its remains are removed. Idempotent, also when it is killed itself. */
export async function takeBack(staging: Staging): Promise<void> {
  const { folder, dir } = staging;
  const done = await lstat(join(dir, "done")).catch(() => null);
  const journal = z.array(Operation).safeParse(await readJson(join(dir, "journal.json")));
  if (done === null && journal.success) for (const operation of journal.data.toReversed()) await takeBackOne(folder, dir, operation);
  await rm(dir, { recursive: true, force: true });
}

async function takeBackOne(folder: string, dir: string, operation: Operation): Promise<void> {
  const target = join(folder, operation.path);
  switch (operation.kind) {
    case "keep":
      await rename(join(dir, operation.kept), target).catch(ifThere);
      return;
    case "rmdir":
      await mkdir(target).then(
        async () => {
          await chmod(target, operation.mode);
          if (process.getuid?.() === 0) await lchown(target, operation.uid, operation.gid);
        },
        (error: NodeJS.ErrnoException) => {
          if (error.code !== "EEXIST") throw error;
        },
      );
      return;
    case "mkdir":
      await rmdir(target).catch(() => undefined);
      return;
    case "put":
      // The kept one takes its place by itself. Otherwise only what was put there goes: what waits in the staging folder was not, and a folder is not ours.
      if (operation.replaces || (await lstat(join(dir, operation.fresh)).catch(() => null)) !== null) return;
      if ((await lstat(target).catch(() => null))?.isDirectory() === false) await unlink(target);
  }
}

function ifThere(error: NodeJS.ErrnoException): void {
  if (error.code !== "ENOENT") throw error;
}

async function readJson(path: string): Promise<unknown> {
  const found = await lstat(path).catch(() => null);
  if (!found?.isFile() || found.size > JOURNAL_BYTES_MAX) return null;
  try {
    return JSON.parse(await readFile(path, "utf8"));
  } catch {
    return null;
  }
}

export async function writeDurably(path: string, content: string | Uint8Array, mode = 0o600): Promise<void> {
  const file = await open(path, "wx", mode);
  try {
    await file.writeFile(content);
    await file.chmod(mode);
    await file.sync();
  } finally {
    await file.close();
  }
}

async function syncFolder(path: string): Promise<void> {
  const folder = await open(path, "r");
  try {
    await folder.sync();
  } finally {
    await folder.close();
  }
}
