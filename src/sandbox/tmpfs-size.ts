/** The approximate kernel memory of an empty file, including its name. */
const BYTES_PER_FILE = 4096;

/**
 * Returns tmpfs options that limit both bytes and files; by default, the kernel allows files to take half the machine's
 * memory.
 */
export function tmpfsSize(bytes: number): [size: string, files: string] {
  return [`size=${bytes}`, `nr_inodes=${filesIn(bytes)}`];
}

/** Returns how many files an in-memory file system may hold. */
export function filesIn(bytes: number): number {
  return Math.max(1, Math.floor(bytes / BYTES_PER_FILE));
}
