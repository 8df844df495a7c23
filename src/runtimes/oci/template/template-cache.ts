import { randomBytes } from "node:crypto";
import { existsSync } from "node:fs";
import { lstat, mkdir, open, readdir, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import { ABSENT, ifErrno, isErrno } from "../../../lib/failures.ts";
import { isRunning } from "../../../sandbox/process-identity.ts";
import { createStore } from "../../../sandbox/store.ts";

/** A draft's name identifies the process that creates it, by pid and start time. */
const DRAFT = /^\.draft-(\d+)-(\d+)-[0-9a-f]{12}$/;
const OTHER_DRAFT = /^\.draft-(\d+)-/;

export interface TemplateCache {
  readonly folder: string;
  /** Returns the path of a finished template, whether or not it exists. */
  path(name: string): string;
  has(name: string): Promise<boolean>;
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
    has: async (name) => (await ifErrno(lstat(join(folder, name)), ABSENT, null))?.isDirectory() ?? false,
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

/** A rename is only sure to survive a power cut after its folder was synced. */
async function syncFolder(path: string): Promise<void> {
  const folder = await open(path, "r");
  try {
    await folder.sync();
  } finally {
    await folder.close();
  }
}
