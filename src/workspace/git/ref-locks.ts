import { randomBytes } from "node:crypto";
import { mkdir, readdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { z } from "zod";
import { CaissonError } from "../../contract/error.ts";
import type { ProcessIdentity } from "../../contract/process-identity.ts";
import { isErrno } from "../../lib/is-errno.ts";
import { jsonOrNull } from "../../lib/json-or-null.ts";
import { currentProcess, isProcessAlive } from "../../sandbox/process-identity.ts";
import { FolderTree } from "../folder-tree.ts";
import { readLower } from "../read-side.ts";
import { type NewFiles, writeNew } from "./repository-files.ts";

/** Beside git's own lock, which is a second name of it: by that a lock is known to be ours. */
const OWN_NAME = /^caisson-lock-[0-9a-f]{32}$/;
const Intent = z.strictObject({ repository: z.string(), lock: z.string(), own: z.string().regex(OWN_NAME) });
type Intent = z.infer<typeof Intent>;

/** Where locks are written down before they are made, outside the repository. */
export interface LockRecords {
  stateDir: string;
  /** Default: as seen on this machine. */
  alive?: (holder: ProcessIdentity) => boolean;
  /** For tests: called before each effect. */
  crashpoint?: (name: string) => void;
}

export interface RefLock extends AsyncDisposable {
  /** Takes the place of this file, whole. */
  becomes(path: string): void;
}

/**
 * A lock file of git's, with the content that the locked file is to have. It is written down first, so that the next
 * attempt removes one whose process died. Throws `busy` while somebody else holds it.
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
    // A second name is there with its content at once; where there are none, the lock is a file like git's own.
    if (!tryLink(tree, own, path)) await writeNew(tree, path, file);
    crashpoint("lock:after");
  } catch (error) {
    await release();
    if (!isErrno(error, "EEXIST")) throw error;
    throw new CaissonError("busy", `somebody else holds ${join(tree.path, path)}`, {
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

/** The name says whose it is, so that taking it over is one rename. */
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
    const taken = join(folder, recordName(found.id, currentProcess()));
    // Of several that try, one removes it.
    if (await renamed(join(folder, name), taken)) await removeDeadLock(taken);
  }
}

async function renamed(from: string, to: string): Promise<boolean> {
  try {
    await rename(from, to);
    return true;
  } catch (error) {
    if (isErrno(error, "ENOENT")) return false;
    throw error;
  }
}

async function removeDeadLock(record: string): Promise<void> {
  // One that a power cut left unfinished announced nothing that was done.
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

/** Whether the lock is the file that was written down; git may hold one of that name by now. */
async function isOwnLock(tree: FolderTree, { lock, own }: Intent): Promise<boolean> {
  const [there, ours] = [tree.stat(lock), tree.stat(own)];
  if (there === null || ours === null) return false;
  if (there.ino === ours.ino && there.dev === ours.dev) return true;
  // Where files have no second names.
  if (ours.nlink > 1 || there.size !== ours.size || there.size === 0 || there.birthtimeMs < ours.birthtimeMs) return false;
  const [a, b] = [await readLower(tree, lock), await readLower(tree, own)];
  return a?.kind === "file" && b?.kind === "file" && !hasLinks(tree, own) && a.content.equals(b.content);
}

/** Whether this file system knows second names: then a lock that is not one is somebody else's. */
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
