import { readdir, stat, unlink } from "node:fs/promises";
import { join } from "node:path";
import { CaissonError } from "../../contract/error.ts";

/** How much the entries of a folder take, and the eviction of those not used for longest. */
export interface CacheRoom {
  /** For bytes being written. Throws `no_space` when what is being written at once would not fit. */
  reserve(bytes: number): void;
  release(bytes: number): void;
  /** An entry of this size was made. Starts an eviction in the background when there is too much. */
  added(bytes: number): void;
  /** Waits for an eviction under way. */
  close(): Promise<void>;
}

/** Evicting a little more than needed makes it rare. */
const KEPT_SHARE = 0.9;
/** Others add to the same folder, so it is counted again after this share of the bound was added here. */
const RECOUNT_SHARE = 0.05;
/** Counted for each entry besides its content, so that very many tiny ones are too much, too. */
const ENTRY_BYTES = 16 * 1024;
/** Counted at a time, with a pause for the connections that are being served. */
const BATCH = 64;

export function createCacheRoom({ folder, bytesMax }: { folder: string; bytesMax: number }): CacheRoom {
  let reserved = 0;
  // Null until somebody adds something: a process that only reads never counts.
  let counted: number | null = null;
  let addedSince = 0;
  let working: Promise<void> | null = null;

  async function recount(): Promise<void> {
    const before = addedSince;
    const files = await list(folder);
    let total = files.reduce((sum, file) => sum + file.bytes, 0);
    if (total > bytesMax) {
      files.sort((a, b) => a.usedMs - b.usedMs);
      for (const { path, bytes } of files) {
        if (total <= bytesMax * KEPT_SHARE) break;
        // Gone already means that another process evicts as well.
        await unlink(path).catch(() => undefined);
        total -= bytes;
      }
    }
    counted = total;
    addedSince -= before;
  }

  const isDue = () => counted === null || counted + addedSince > bytesMax || addedSince > bytesMax * RECOUNT_SHARE;

  async function recountWhileDue(): Promise<void> {
    try {
      while (isDue()) await recount();
    } catch {
      // A folder that cannot be read is found out by whoever uses it; the next addition tries again.
    }
    working = null;
  }

  return {
    reserve(bytes) {
      if (reserved + bytes > bytesMax)
        throw new CaissonError("no_space", "too much is being fetched at once for the size of the package cache");
      reserved += bytes;
    },
    release(bytes) {
      reserved -= bytes;
    },
    added(bytes) {
      addedSince += bytes + ENTRY_BYTES;
      if (working === null && isDue()) working = recountWhileDue();
    },
    async close() {
      await working;
    },
  };
}

async function list(folder: string): Promise<{ path: string; bytes: number; usedMs: number }[]> {
  const found: { path: string; bytes: number; usedMs: number }[] = [];
  for (const part of await readdir(folder)) {
    const names = await readdir(join(folder, part)).catch(() => []);
    for (let at = 0; at < names.length; at += BATCH) {
      const batch = names.slice(at, at + BATCH).map((name) => join(folder, part, name));
      const stats = await Promise.all(batch.map((path) => stat(path).catch(() => null)));
      stats.forEach((stats, index) => {
        if (stats !== null)
          found.push({ path: batch[index] as string, bytes: stats.size + ENTRY_BYTES, usedMs: Math.max(stats.atimeMs, stats.mtimeMs) });
      });
    }
  }
  return found;
}
