import { randomBytes } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { link, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { ProcessIdentity } from "../../contract/process-identity.ts";
import { isErrno } from "../../lib/is-errno.ts";
import type { Store } from "../../sandbox/store.ts";

/**
 * Who serves a sandbox's network now: a mark of each handle in its folder, which counts as long as the process that
 * made it lives.
 */
const markName = /^network-served-by-.+\.json$/;
/**
 * Who keeps it, which is one at a time: each claim is a file with the next number, and the newest counts as long as its
 * process lives.
 */
const claimName = /^network-keeper-(\d{8})\.json$/;
/** A number stays taken until nobody can be about to take it. */
const CLAIMS_KEPT = 16;

/**
 * Says that one handle of this process serves the network. A process may hold a sandbox several times, and each handle
 * takes back its own mark only.
 */
export interface ServingMark {
  /** May be called again. */
  set(): Promise<void>;
  clear(): Promise<void>;
}

export function createServingMark(folder: string, store: Pick<Store, "ownerOf" | "ownerAlive">): ServingMark {
  const owner = store.ownerOf();
  const path = join(folder, `network-served-by-${owner.pid}-${randomBytes(6).toString("hex")}.json`);
  return {
    async set() {
      // Those of processes that were killed.
      for (const { name, owner } of marksIn(folder)) if (!store.ownerAlive(owner)) await rm(join(folder, name), { force: true });
      await writeFile(path, JSON.stringify(owner), { mode: 0o600 });
    },
    clear: () => rm(path, { force: true }),
  };
}

/** The pid of a process that serves it, if one lives: its keeper's before others'. */
export function servedBy(folder: string, store: Pick<Store, "ownerAlive">): number | null {
  const keeper = keeperOf(folder, store);
  return keeper?.serves ? keeper.pid : (serversOf(folder, store)[0] ?? null);
}

function serversOf(folder: string, store: Pick<Store, "ownerAlive">): number[] {
  return marksIn(folder).flatMap(({ owner }) => (store.ownerAlive(owner) ? [owner.pid] : []));
}

function marksIn(folder: string): { name: string; owner: ProcessIdentity }[] {
  return namesIn(folder, markName).flatMap((name) => {
    const owner = ownerIn(join(folder, name));
    return owner === null ? [] : [{ name, owner }];
  });
}

/** The process that keeps the sandbox's network, if one lives, and whether it serves it by now. */
export function keeperOf(folder: string, store: Pick<Store, "ownerAlive">): { pid: number; serves: boolean } | null {
  const owner = newestClaim(folder).owner;
  if (owner === null || !store.ownerAlive(owner)) return null;
  return { pid: owner.pid, serves: serversOf(folder, store).includes(owner.pid) };
}

/**
 * Makes this process the keeper of a sandbox's network; false when another one is. A link to a name that is taken
 * fails, so that of many who find the keeper dead one becomes the next.
 */
export async function becomeKeeper(folder: string, store: Pick<Store, "ownerOf" | "ownerAlive">): Promise<boolean> {
  const self = store.ownerOf();
  const temporary = join(folder, `network-${randomBytes(6).toString("hex")}.tmp`);
  await writeFile(temporary, JSON.stringify(self), { mode: 0o600, flag: "wx" });
  try {
    for (;;) {
      const { number, owner } = newestClaim(folder);
      if (owner !== null && store.ownerAlive(owner)) return owner.pid === self.pid;
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

function newestClaim(folder: string): { number: number; owner: ProcessIdentity | null } {
  const number = Math.max(0, ...namesIn(folder, claimName).map((name) => Number(claimName.exec(name)?.[1])));
  return { number, owner: number === 0 ? null : ownerIn(claimPath(folder, number)) };
}

function claimPath(folder: string, number: number): string {
  return join(folder, `network-keeper-${String(number).padStart(8, "0")}.json`);
}

function namesIn(folder: string, pattern: RegExp): string[] {
  try {
    return readdirSync(folder).filter((name) => pattern.test(name));
  } catch {
    // The sandbox is gone.
    return [];
  }
}

function ownerIn(path: string): ProcessIdentity | null {
  try {
    return ProcessIdentity.parse(JSON.parse(readFileSync(path, "utf8")));
  } catch {
    return null;
  }
}
