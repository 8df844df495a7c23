import { readdir, stat, unlink } from "node:fs/promises";
import { join } from "node:path";
import { CaissonError } from "../../contract/error/error.ts";
import { ABSENT, ifErrno, ignore } from "../../lib/failures.ts";

/** Tracks the size of a folder's entries, and evicts the least recently used ones. */
export interface CacheRoom {
  /** Reserves space for bytes being written. Throws `no_space` if all concurrent writes would not fit together. */
  reserve(bytes: number): void;
  release(bytes: number): void;
  /** Counts a new entry of this size. Starts an eviction in the background if there is too much. */
  addEntry(bytes: number): void;
  /** Waits for an eviction in progress. */
  close(): Promise<void>;
}

/** Evicting a little more than needed makes evictions rare. */
const KEPT_SHARE = 0.9;
/** Other processes add to the same folder, so we recount after adding this share of the limit. */
const RECOUNT_SHARE = 0.05;
/** Added for each entry, so that very many tiny entries reach the limit too. */
const ENTRY_BYTES = 16 * 1024;
/** How many files to count at a time, so that connections are served in between. */
const BATCH = 64;

export function createCacheRoom({ folder, bytesMax }: { folder: string; bytesMax: number }): CacheRoom {
  let reserved = 0;
  // Null until something is added: a process that only reads never counts.
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
        await ignore(unlink(path), "another process may have evicted it; the next count sees what remains");
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
    } finally {
      working = null;
    }
  }

  return {
    reserve(bytes) {
      if (reserved + bytes > bytesMax)
        throw new CaissonError("no_space", "the packages being fetched at once exceed the size of the package cache");
      reserved += bytes;
    },
    release(bytes) {
      reserved -= bytes;
    },
    addEntry(bytes) {
      addedSince += bytes + ENTRY_BYTES;
      if (working === null && isDue()) working = ignore(recountWhileDue(), "the next addition counts again");
    },
    async close() {
      await working;
    },
  };
}

async function list(folder: string): Promise<{ path: string; bytes: number; usedMs: number }[]> {
  const found: { path: string; bytes: number; usedMs: number }[] = [];
  for (const part of await readdir(folder)) {
    const names = await ifErrno(readdir(join(folder, part)), ABSENT, []);
    for (let at = 0; at < names.length; at += BATCH) {
      const batch = names.slice(at, at + BATCH).map((name) => join(folder, part, name));
      const stats = await Promise.all(batch.map((path) => ifErrno(stat(path), ABSENT, null)));
      stats.forEach((stats, index) => {
        if (stats !== null)
          found.push({ path: batch[index] as string, bytes: stats.size + ENTRY_BYTES, usedMs: Math.max(stats.atimeMs, stats.mtimeMs) });
      });
    }
  }
  return found;
}
