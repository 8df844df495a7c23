import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { defaultLimits } from "../../contract/default-limits.ts";
import { SandboxId } from "../../contract/ids.ts";
import { LOCAL_OWNER } from "../../contract/owner.ts";
import { isErrno } from "../../lib/is-errno.ts";
import { isWaiting, type Store } from "../../sandbox/store.ts";
import { RUN_LABEL } from "../runs/run-spec.ts";
import type { Room } from "./schedule.ts";

/**
 * What a sandbox counts that was not given a bound of its own: the usual bound is a ceiling, and hardly ever reached.
 */
const UNASKED_MEMORY_BYTES = 256 * 1024 * 1024;

export interface TakenRoom extends Room {
  /** Runs that have a sandbox. */
  runs: ReadonlySet<string>;
  /** How many each owner has. */
  byOwner: ReadonlyMap<string, number>;
  /** What the sandboxes of each owner may use at most: their limit, or the usual one. */
  promisedBytes: ReadonlyMap<string, number>;
}

export interface SandboxRoom {
  /** What the sandboxes of this state folder take, whoever made them. */
  taken(): Promise<TakenRoom>;
}

export const roomFor = (memoryBytes: number | null | undefined): Room => ({
  sandboxes: 1,
  memoryBytes: memoryBytes ?? UNASKED_MEMORY_BYTES,
});

/** What a sandbox may really use. */
export const promisedTo = (memoryBytes: number | null | undefined): number => memoryBytes ?? defaultLimits.memoryBytes;

/**
 * Each record is read once: what a sandbox asked for does not change. Those that a runtime keeps ready take no room,
 * and are looked at each time: whoever claims one gets it under the same id, with limits of their own.
 */
export function createSandboxRoom({ stateDir, store }: { stateDir: string; store: Pick<Store, "read"> }): SandboxRoom {
  const folder = join(stateDir, "sandboxes");
  const known = new Map<string, { memoryBytes: number; promisedBytes: number; run: string | undefined; owner: string | undefined }>();
  const lookAt = async (id: string) => {
    const found = known.get(id);
    if (found !== undefined) return found;
    // One that is just being made or removed, or that cannot be read, is there all the same.
    const record = await store.read(id).catch(() => null);
    if (record === null) return { ...roomFor(null), promisedBytes: 0, run: undefined, owner: undefined };
    if (isWaiting(record)) return null;
    const { limits, labels, owner = LOCAL_OWNER } = record.spec;
    const { memoryBytes } = limits;
    const entry = { ...roomFor(memoryBytes), promisedBytes: promisedTo(memoryBytes), run: labels[RUN_LABEL], owner };
    known.set(id, entry);
    return entry;
  };
  return {
    async taken() {
      const names = await readdir(folder).catch((error: unknown) => {
        if (isErrno(error, "ENOENT")) return [];
        throw error;
      });
      const ids = new Set(names.filter((name) => SandboxId.safeParse(name).success));
      for (const id of known.keys()) if (!ids.has(id)) known.delete(id);
      const entries = (await Promise.all([...ids].map(lookAt))).filter((entry) => entry !== null);
      return {
        sandboxes: entries.length,
        memoryBytes: entries.reduce((sum, { memoryBytes }) => sum + memoryBytes, 0),
        runs: new Set(entries.flatMap(({ run }) => run ?? [])),
        byOwner: sumOf(entries, () => 1),
        promisedBytes: sumOf(entries, ({ promisedBytes }) => promisedBytes),
      };
    },
  };
}

function sumOf<Entry extends { owner: string | undefined }>(entries: readonly Entry[], value: (entry: Entry) => number) {
  const sums = new Map<string, number>();
  for (const entry of entries) if (entry.owner !== undefined) sums.set(entry.owner, (sums.get(entry.owner) ?? 0) + value(entry));
  return sums;
}
