/** A file that is empty takes memory of the kernel's all the same, about this much with its name. */
const BYTES_PER_FILE = 4096;

/**
 * Options of a tmpfs that bound both its bytes and its files: the kernel's own bound on files is half the machine's
 * memory.
 */
export function tmpfsSize(bytes: number): [size: string, files: string] {
  return [`size=${bytes}`, `nr_inodes=${filesIn(bytes)}`];
}

/** How many files a file system in memory may hold. */
export function filesIn(bytes: number): number {
  return Math.max(1, Math.floor(bytes / BYTES_PER_FILE));
}
