import { randomBytes } from "node:crypto";
import { existsSync } from "node:fs";
import { lstat, mkdir, open, readdir, rename, rm, utimes, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { ABSENT, ifErrno, ignore, isErrno } from "../../../lib/failures.ts";
import { isRunning } from "../../../sandbox/process-identity.ts";
import { createStore } from "../../../sandbox/store.ts";

/** A draft's name identifies the process that creates it, by pid and start time. */
const DRAFT = /^\.draft-(\d+)-(\d+)-[0-9a-f]{12}$/;
const OTHER_DRAFT = /^\.draft-(\d+)-/;
/** The folder of notes: an empty file for each template, with the time of its last use. */
const USES = "uses";
const NOTED_AGAIN_MS = 60_000;
/** Unpacked images, and skeletons of this machine's system. */
const TEMPLATE = /^(?:image|host|rootless)-/;

export interface TemplateCache {
  readonly folder: string;
  /** Returns the path of a finished template, whether or not it exists. */
  path(name: string): string;
  /** Returns the path of a finished template and notes its use, or returns null if it does not exist. */
  use(name: string): Promise<string | null>;
  /** Returns the finished templates, and when each was last used, to about a minute. */
  uses(): Promise<{ name: string; lastUsedMs: number }[]>;
  /** Creates an empty folder that belongs to this process. A sweep removes it after the process has ended. */
  draft(): Promise<string>;
  /**
   * Makes a draft the template of that name in one step. If another process was faster, its template stays and the
   * draft is removed.
   */
  publish(draft: string, name: string): Promise<string>;
  discard(draft: string): Promise<void>;
  /** Removes a template: first its name, so that no process finds it, then its files. */
  remove(name: string): Promise<void>;
  /**
   * Removes a template that `isUnused` accepts. We ask twice: once it has lost its name, no further process finds it.
   * Returns false, and leaves the template as it is, if it is in use.
   */
  removeUnused(name: string, isUnused: (lastUsedMs: number) => Promise<boolean>): Promise<boolean>;
  /** Removes the drafts of dead processes. Returns how many. */
  sweep(): Promise<number>;
}

/**
 * Creates the cache of templates under `<stateDir>/templates`, each named after what it was made from and never
 * changed. `remove` is called for files that may belong to ids that only a user namespace can touch.
 */
export function createTemplateCache(options: { stateDir: string; remove?: (path: string) => Promise<void> }): TemplateCache {
  const folder = join(options.stateDir, "templates");
  const store = createStore({ stateDir: options.stateDir });
  const discard = async (path: string) => {
    const failure = await rm(path, { recursive: true, force: true }).then(
      () => null,
      (cause: unknown) => cause,
    );
    // The process that unpacks for a killed caller may write for another moment.
    if (isErrno(failure, "ENOTEMPTY")) await rm(path, { recursive: true, force: true, maxRetries: 8, retryDelay: 100 });
    else if (isErrno(failure, "EACCES", "EPERM") && options.remove !== undefined) await options.remove(path);
    else if (failure !== null) throw failure;
  };
  const makerLives = (name: string) => {
    const [, pid, ticks] = DRAFT.exec(name) ?? [];
    if (ticks === undefined) return existsSync(`/proc/${OTHER_DRAFT.exec(name)?.[1]}`);
    return isRunning({ pid: Number(pid), startTicks: Number(ticks) });
  };
  const cache: TemplateCache = {
    folder,
    path: (name) => join(folder, name),
    async use(name) {
      const path = join(folder, name);
      const isThere = async () => (await ifErrno(lstat(path), ABSENT, null))?.isDirectory() ?? false;
      if (!(await isThere())) return null;
      await ignore(noteUse(join(folder, USES, name)), "on a full disk, an earlier use counts");
      // A process that removed the template before our note did not see the use; a process that removes it now does.
      return (await isThere()) ? path : null;
    },
    async uses() {
      const names = (await ifErrno(readdir(folder), ABSENT, [])).filter((name) => TEMPLATE.test(name));
      return await Promise.all(names.map(async (name) => ({ name, lastUsedMs: await lastUseOf(folder, name) })));
    },
    async draft() {
      const { pid, startTicks } = store.thisProcess();
      const path = join(folder, `.draft-${pid}-${startTicks}-${randomBytes(6).toString("hex")}`);
      await mkdir(path, { recursive: true, mode: 0o700 });
      return path;
    },
    async publish(draft, name) {
      try {
        await rename(draft, join(folder, name));
      } catch (cause) {
        await discard(draft);
        if (!isErrno(cause, "ENOTEMPTY", "EEXIST")) throw cause;
      }
      await syncFolder(folder);
      return join(folder, name);
    },
    discard,
    async remove(name) {
      const draft = await cache.draft();
      await rename(join(folder, name), join(draft, "removed")).catch((cause: unknown) => {
        if (!isErrno(cause, "ENOENT")) throw cause;
      });
      await discard(draft);
      await rm(join(folder, USES, name), { force: true });
    },
    async removeUnused(name, isUnused) {
      if (!TEMPLATE.test(name) || !(await isUnused(await lastUseOf(folder, name)))) return false;
      const draft = await cache.draft();
      const removed = join(draft, "removed");
      const isThere = await ifErrno(
        rename(join(folder, name), removed).then(() => true),
        ABSENT,
        false,
      );
      const isStillUnused = isThere && (await isUnused(await lastUseOf(folder, name)));
      if (isStillUnused) await rm(join(folder, USES, name), { force: true });
      // If another process has created the template again, the new one stays.
      else if (isThere) await ifErrno(rename(removed, join(folder, name)), ["ENOTEMPTY", "EEXIST"], undefined);
      await discard(draft);
      return isStillUnused;
    },
    async sweep() {
      let removed = 0;
      const names = await ifErrno(readdir(folder), ABSENT, []);
      for (const name of names) {
        if (!OTHER_DRAFT.test(name) || makerLives(name)) continue;
        await discard(join(folder, name));
        removed += 1;
      }
      return removed;
    },
  };
  return cache;
}

async function noteUse(path: string): Promise<void> {
  const known = await ifErrno(lstat(path), ABSENT, null);
  const nowMs = Date.now();
  if (known !== null && Math.abs(nowMs - known.mtimeMs) < NOTED_AGAIN_MS) return;
  await mkdir(dirname(path), { recursive: true, mode: 0o700 });
  await writeFile(path, "", { mode: 0o600 });
  await utimes(path, nowMs / 1000, nowMs / 1000);
}

/**
 * Returns 0 if neither the template nor its note exists. A template of an older version has no note, so its ctime
 * counts.
 */
async function lastUseOf(folder: string, name: string): Promise<number> {
  const [note, template] = await Promise.all([USES, "."].map((place) => ifErrno(lstat(join(folder, place, name)), ABSENT, null)));
  return note?.mtimeMs ?? template?.ctimeMs ?? 0;
}

/** A rename is certain to survive a power cut only after its folder was synced. */
async function syncFolder(path: string): Promise<void> {
  const folder = await open(path, "r");
  try {
    await folder.sync();
  } finally {
    await folder.close();
  }
}
