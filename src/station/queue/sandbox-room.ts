import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { defaultLimits } from "../../contract/defaults/default-limits.ts";
import { foundOrNull } from "../../contract/error/found-or-null.ts";
import { SandboxId } from "../../contract/ids.ts";
import { LOCAL_OWNER } from "../../contract/token/owner.ts";
import { ifErrno, ignore } from "../../lib/failures.ts";
import { isWaiting, type Store } from "../../sandbox/store.ts";
import { RUN_LABEL } from "../vocabulary/station-names.ts";
import type { Room } from "./schedule.ts";

/** The memory we count for a sandbox without a memory limit: it hardly ever reaches the default limit. */
const UNASKED_MEMORY_BYTES = 256 * 1024 * 1024;

export interface TakenRoom extends Room {
  /** The runs that have a sandbox. */
  runs: ReadonlySet<string>;
  /** The number of sandboxes by owner. */
  byOwner: ReadonlyMap<string, number>;
  /** The sum of the sandboxes' memory limits, explicit or default, by owner. */
  promisedBytes: ReadonlyMap<string, number>;
}

export interface SandboxRoom {
  /** Returns the room taken by all sandboxes in this state folder, including those that other processes created. */
  readTakenRoom(): Promise<TakenRoom>;
}

export const roomFor = (memoryBytes: number | null | undefined): Room => ({
  sandboxes: 1,
  memoryBytes: memoryBytes ?? UNASKED_MEMORY_BYTES,
});

/** Returns the most memory that a sandbox may use. */
export const promisedTo = (memoryBytes: number | null | undefined): number => memoryBytes ?? defaultLimits.memoryBytes;

/**
 * Reads each record once, since a sandbox's request does not change. Sandboxes that a runtime keeps in its pool take no
 * room, and we read them each time: a caller gets such a sandbox under the same id, with its own limits.
 */
export function createSandboxRoom({ stateDir, store }: { stateDir: string; store: Pick<Store, "read"> }): SandboxRoom {
  const folder = join(stateDir, "sandboxes");
  const known = new Map<string, { memoryBytes: number; promisedBytes: number; run: string | undefined; owner: string | undefined }>();
  const inspectSandbox = async (id: string) => {
    const found = known.get(id);
    if (found !== undefined) return found;
    const record = await ignore(foundOrNull(store.read(id)), "a sandbox with a damaged record still takes room");
    if (record === undefined) return { ...roomFor(null), promisedBytes: 0, run: undefined, owner: undefined };
    if (record === null || isWaiting(record)) return null;
    const { limits, labels, owner = LOCAL_OWNER } = record.spec;
    const { memoryBytes } = limits;
    const entry = { ...roomFor(memoryBytes), promisedBytes: promisedTo(memoryBytes), run: labels[RUN_LABEL], owner };
    known.set(id, entry);
    return entry;
  };
  return {
    async readTakenRoom() {
      const names = await ifErrno(readdir(folder), ["ENOENT"], []);
      const ids = new Set(names.filter((name) => SandboxId.safeParse(name).success));
      for (const id of known.keys()) if (!ids.has(id)) known.delete(id);
      const entries = (await Promise.all([...ids].map(inspectSandbox))).filter((entry) => entry !== null);
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
