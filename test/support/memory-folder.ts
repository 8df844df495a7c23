import { statfsSync } from "node:fs";
import { tmpdir } from "node:os";

const TMPFS_MAGIC = 0x0102_1994;
const FREE_BYTES_MIN = 512 * 1024 * 1024;

/** For what a test writes durably and needs no disk for: a station's log waits for one a dozen times in each test. */
export function memoryFolder(): string {
  const shared = "/dev/shm";
  try {
    const { type, bavail, bsize } = statfsSync(shared);
    if (type === TMPFS_MAGIC && bavail * bsize >= FREE_BYTES_MIN) return shared;
  } catch {
    // Not every system has one.
  }
  return tmpdir();
}
