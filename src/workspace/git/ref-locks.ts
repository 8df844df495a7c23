import { randomBytes } from "node:crypto";
import { mkdir, readdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { z } from "zod";
import { CaissonError } from "../../contract/error/error.ts";
import type { ProcessIdentity } from "../../contract/process-identity.ts";
import { isErrno, jsonOrNull } from "../../lib/failures.ts";
import { currentProcess, isProcessAlive } from "../../sandbox/process-identity.ts";
import { FolderTree } from "../folder-tree.ts";
import { readLower } from "../read-side.ts";
import { type NewFiles, writeNew } from "./repository-files.ts";

/** The name of a second link to git's lock file, which shows that the lock is ours. */
const OWN_NAME = /^caisson-lock-[0-9a-f]{32}$/;
const Intent = z.strictObject({ repository: z.string(), lock: z.string(), own: z.string().regex(OWN_NAME) });
type Intent = z.infer<typeof Intent>;

/** Where locks are recorded before they are created, outside the repository. */
export interface LockRecords {
  stateDir: string;
  /** Returns whether a holder is alive. Defaults to the view of this machine. */
  alive?: (holder: ProcessIdentity) => boolean;
  /** For tests: called before each step. */
  crashpoint?: (name: string) => void;
}

export interface RefLock extends AsyncDisposable {
  /** Atomically replaces this file with the lock file. */
  becomes(path: string): void;
}

/**
 * Creates a git lock file with the new content of the locked file. Records it first, so that the next attempt removes
 * the lock of a dead process. Throws `busy` while another process holds it.
 */
export async function lockFile(
  tree: FolderTree,
  { path, content, ...options }: NewFiles & { path: string; content: string; locks: LockRecords },
): Promise<RefLock> {
  const { locks } = options;
  const crashpoint = locks.crashpoint ?? (() => undefined);
  await removeDeadLocks(locks);
  const own = `caisson-lock-${randomBytes(16).toString("hex")}`;
  const record = await writeIntent({ repository: tree.path, lock: path, own }, locks);
  const release = async () => {
    crashpoint("lock.own:removed:before");
    unlinkIfThere(tree, own);
    await rm(record, { force: true });
  };
  try {
    crashpoint("lock.own:before");
    const file = { ...options, content: Buffer.from(content), mode: 0o644 };
    await writeNew(tree, own, file);
    crashpoint("lock:before");
    // A link appears together with its content. On file systems without links, we create an ordinary lock file like
    // git.
    if (!tryLink(tree, own, path)) await writeNew(tree, path, file);
    crashpoint("lock:after");
  } catch (error) {
    await release();
    if (!isErrno(error, "EEXIST")) throw error;
    throw new CaissonError("busy", `another process holds ${join(tree.path, path)}`, {
      hint: `If no process uses it, remove ${join(tree.path, path)}.`,
    });
  }
  let isHeld = true;
  return {
    becomes(target) {
      crashpoint("lock.becomes:before");
      tree.rename(path, target);
      isHeld = false;
    },
    async [Symbol.asyncDispose]() {
      if (isHeld) tree.unlink(path);
      await release();
    },
  };
}

function tryLink(tree: FolderTree, from: string, to: string): boolean {
  try {
    tree.link(from, to);
    return true;
  } catch (error) {
    if (isErrno(error, "EPERM", "ENOTSUP", "EOPNOTSUPP", "ENOSYS", "EMLINK")) return false;
    throw error;
  }
}

/** The record's name identifies its holder, so one rename takes it over. */
const recordName = (id: string, { pid, startTicks, bootId }: ProcessIdentity) => `${id}.${pid}.${startTicks}.${bootId}.json`;

function holderOf(name: string): { id: string; holder: ProcessIdentity } | null {
  const [, id, pid, startTicks, bootId] = /^([0-9a-f]{16})\.(\d{1,10})\.(\d{1,18})\.([0-9a-f-]{1,64})\.json$/.exec(name) ?? [];
  if (id === undefined || bootId === undefined) return null;
  return { id, holder: { pid: Number(pid), startTicks: Number(startTicks), bootId } };
}

const recordsFolder = ({ stateDir }: LockRecords) => join(stateDir, "ref-locks");

async function writeIntent(intent: Intent, locks: LockRecords): Promise<string> {
  const folder = recordsFolder(locks);
  await mkdir(folder, { recursive: true, mode: 0o700 });
  const path = join(folder, recordName(randomBytes(8).toString("hex"), currentProcess()));
  await writeFile(path, JSON.stringify(intent), { mode: 0o600, flag: "wx", flush: true });
  return path;
}

/** Removes the locks that processes of this state folder left when they died. */
export async function removeDeadLocks(locks: LockRecords): Promise<void> {
  const folder = recordsFolder(locks);
  const names = await readdir(folder).catch((error: unknown) => {
    if (isErrno(error, "ENOENT")) return [];
    throw error;
  });
  for (const name of names) {
    const found = holderOf(name);
    if (found === null || (locks.alive ?? isProcessAlive)(found.holder)) continue;
    const claimedPath = join(folder, recordName(found.id, currentProcess()));
    // If several processes try, one removes it.
    if (await tryRename(join(folder, name), claimedPath)) await removeDeadLock(claimedPath);
  }
}

async function tryRename(from: string, to: string): Promise<boolean> {
  try {
    await rename(from, to);
    return true;
  } catch (error) {
    if (isErrno(error, "ENOENT")) return false;
    throw error;
  }
}

async function removeDeadLock(record: string): Promise<void> {
  // A power failure left the record incomplete, so the lock was never created.
  const { data: intent } = Intent.safeParse(jsonOrNull(await readFile(record, "utf8")));
  if (intent !== undefined) {
    using tree = openOrNull(intent.repository);
    if (tree !== null) {
      if (await isOwnLock(tree, intent)) unlinkIfThere(tree, intent.lock);
      unlinkIfThere(tree, intent.own);
    }
  }
  await rm(record, { force: true });
}

/** Returns whether the lock is the recorded file: git may now have a lock with the same name. */
async function isOwnLock(tree: FolderTree, { lock, own }: Intent): Promise<boolean> {
  const [there, ours] = [tree.stat(lock), tree.stat(own)];
  if (there === null || ours === null) return false;
  if (there.ino === ours.ino && there.dev === ours.dev) return true;
  // The rest is for file systems without links.
  if (ours.nlink > 1 || there.size !== ours.size || there.size === 0 || there.birthtimeMs < ours.birthtimeMs) return false;
  const [a, b] = [await readLower(tree, lock), await readLower(tree, own)];
  return a?.kind === "file" && b?.kind === "file" && !hasLinks(tree, own) && a.content.equals(b.content);
}

/**
 * Returns whether this file system supports links. If so, a lock that is not linked to ours belongs to another process.
 */
function hasLinks(tree: FolderTree, own: string): boolean {
  const probe = `caisson-lock-${randomBytes(16).toString("hex")}`;
  if (!tryLink(tree, own, probe)) return false;
  tree.unlink(probe);
  return true;
}

function unlinkIfThere(tree: FolderTree, path: string): void {
  try {
    tree.unlink(path);
  } catch (error) {
    if (!isErrno(error, "ENOENT")) throw error;
  }
}

function openOrNull(path: string): FolderTree | null {
  try {
    return new FolderTree(path, { follow: false });
  } catch (error) {
    if (isErrno(error, "ENOENT", "ENOTDIR", "ELOOP", "EACCES")) return null;
    throw error;
  }
}
