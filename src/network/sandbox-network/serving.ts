import { randomBytes } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { link, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { ProcessIdentity } from "../../contract/process-identity.ts";
import { ABSENT, ifErrnoSync, isErrno, jsonOrNull } from "../../lib/failures.ts";
import type { Store } from "../../sandbox/store.ts";

/**
 * The mark of a handle that serves a sandbox's network, in the sandbox's folder. It counts as long as the process that
 * wrote it lives.
 */
const markName = /^network-served-by-.+\.json$/;
/**
 * A claim to keep the network, which one process does at a time. Each claim is a file with the next number, and the
 * newest counts as long as its process lives.
 */
const claimName = /^network-keeper-(\d{8})\.json$/;
/** A number stays taken as long as a process may still try to take it. */
const CLAIMS_KEPT = 16;

/**
 * Marks that one handle of this process serves the network. A process may hold a sandbox several times, and each handle
 * removes only its own mark.
 */
export interface ServingMark {
  /** May be called repeatedly. */
  set(): Promise<void>;
  clear(): Promise<void>;
}

export function createServingMark(folder: string, store: Pick<Store, "thisProcess" | "isHolderAlive">): ServingMark {
  const self = store.thisProcess();
  const path = join(folder, `network-served-by-${self.pid}-${randomBytes(6).toString("hex")}.json`);
  return {
    async set() {
      // Removes the marks of killed processes.
      for (const { name, holder } of marksIn(folder)) if (!store.isHolderAlive(holder)) await rm(join(folder, name), { force: true });
      await writeFile(path, JSON.stringify(self), { mode: 0o600 });
    },
    clear: () => rm(path, { force: true }),
  };
}

/** Returns the pid of a living process that serves the network, preferably the keeper. */
export function servedBy(folder: string, store: Pick<Store, "isHolderAlive">): number | null {
  const keeper = keeperOf(folder, store);
  return keeper?.serves ? keeper.pid : (serversOf(folder, store)[0] ?? null);
}

function serversOf(folder: string, store: Pick<Store, "isHolderAlive">): number[] {
  return marksIn(folder).flatMap(({ holder }) => (store.isHolderAlive(holder) ? [holder.pid] : []));
}

function marksIn(folder: string): { name: string; holder: ProcessIdentity }[] {
  return namesIn(folder, markName).flatMap((name) => {
    const holder = holderIn(join(folder, name));
    return holder === null ? [] : [{ name, holder }];
  });
}

/** Returns the living process that keeps the sandbox's network, and whether it already serves it. */
export function keeperOf(folder: string, store: Pick<Store, "isHolderAlive">): { pid: number; serves: boolean } | null {
  const holder = newestClaim(folder).holder;
  if (holder === null || !store.isHolderAlive(holder)) return null;
  return { pid: holder.pid, serves: serversOf(folder, store).includes(holder.pid) };
}

/**
 * Makes this process the keeper of a sandbox's network. Returns false if another process is the keeper. A link to an
 * existing name fails, so if many processes find the keeper dead, only one of them becomes the next.
 */
export async function becomeKeeper(folder: string, store: Pick<Store, "thisProcess" | "isHolderAlive">): Promise<boolean> {
  const self = store.thisProcess();
  const temporary = join(folder, `network-${randomBytes(6).toString("hex")}.tmp`);
  await writeFile(temporary, JSON.stringify(self), { mode: 0o600, flag: "wx" });
  try {
    for (;;) {
      const { number, holder } = newestClaim(folder);
      if (holder !== null && store.isHolderAlive(holder)) return holder.pid === self.pid;
      try {
        await link(temporary, claimPath(folder, number + 1));
      } catch (error) {
        if (isErrno(error, "EEXIST")) continue;
        throw error;
      }
      await rm(claimPath(folder, number + 1 - CLAIMS_KEPT), { force: true });
      return true;
    }
  } finally {
    await rm(temporary, { force: true });
  }
}

function newestClaim(folder: string): { number: number; holder: ProcessIdentity | null } {
  const number = Math.max(0, ...namesIn(folder, claimName).map((name) => Number(claimName.exec(name)?.[1])));
  return { number, holder: number === 0 ? null : holderIn(claimPath(folder, number)) };
}

function claimPath(folder: string, number: number): string {
  return join(folder, `network-keeper-${String(number).padStart(8, "0")}.json`);
}

function namesIn(folder: string, pattern: RegExp): string[] {
  return ifErrnoSync(() => readdirSync(folder), ABSENT, []).filter((name) => pattern.test(name));
}

function holderIn(path: string): ProcessIdentity | null {
  const text = ifErrnoSync(() => readFileSync(path, "utf8"), ABSENT, "");
  return ProcessIdentity.safeParse(jsonOrNull(text)).data ?? null;
}
