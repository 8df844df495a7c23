import { mkdirSync, statfsSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const TMPFS_MAGIC = 0x0102_1994;
const FREE_BYTES_MIN = 512 * 1024 * 1024;

/** For what a test writes durably and needs no disk for: a station's log waits for one a dozen times in each test. */
export function memoryFolder(): string {
  try {
    const shared = sharedMemory();
    const { type, bavail, bsize } = statfsSync(shared);
    if (type === TMPFS_MAGIC && bavail * bsize >= FREE_BYTES_MIN) return shared;
  } catch {
    // Not every system has one.
  }
  return tmpdir();
}

/** A folder in the machine's shared memory: within a run of `scripts/test` the run's own, so that what is left there is known as its. */
export function sharedMemory(): string {
  const { CAISSON_TEST_RUN: run } = process.env;
  if (run === undefined) return "/dev/shm";
  const folder = join("/dev/shm", run);
  mkdirSync(folder, { recursive: true });
  return folder;
}
