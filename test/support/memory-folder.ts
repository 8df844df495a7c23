import { mkdirSync, statfsSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const TMPFS_MAGIC = 0x0102_1994;
const FREE_BYTES_MIN = 512 * 1024 * 1024;

/**
 * Returns a folder for durable writes that need no disk. A station's log would wait for a disk a dozen times in each
 * test.
 */
export function memoryFolder(): string {
  try {
    const shared = sharedMemory();
    const { type, bavail, bsize } = statfsSync(shared);
    if (type === TMPFS_MAGIC && bavail * bsize >= FREE_BYTES_MIN) return shared;
  } catch {
    // Some systems have no shared memory.
  }
  return tmpdir();
}

/**
 * Returns a folder in the machine's shared memory. A run of `scripts/test` has its own, so leftovers there belong to
 * it.
 */
export function sharedMemory(): string {
  const { CAISSON_TEST_RUN: run } = process.env;
  if (run === undefined) return "/dev/shm";
  const folder = join("/dev/shm", run);
  mkdirSync(folder, { recursive: true });
  return folder;
}
