import { readFileSync, statSync } from "node:fs";
import { isStopped, processStat } from "../../lib/process-stat.ts";

/** The byte of the shared-memory file that a writer in WAL mode locks, as SQLite's file format has it. */
const WRITE_LOCK_BYTE = 120;

/** The process that is writing to the database at `path`; null if there is none, or none that we can see. */
export function lockHolder(path: string): number | null {
  try {
    const { ino } = statSync(`${path}-shm`);
    const writers = readFileSync("/proc/locks", "utf8").split("\n").map(writerOf(ino));
    return writers.find((pid) => pid !== null) ?? null;
  } catch {
    return null;
  }
}

/**
 * For the user who waits: one who pressed Ctrl-Z in another window must learn that this is what everything waits for.
 */
export function describeLockHolder(path: string): string {
  const pid = lockHolder(path);
  if (pid === null) return "another process";
  return isStopped(processStat(pid)) ? `process ${pid}, which is stopped (\`kill -CONT ${pid}\` continues it),` : `process ${pid}`;
}

/**
 * A line reads `1: POSIX  ADVISORY  WRITE 4711 fe:00:2146592 120 120`. A pid of 0 or less is in a namespace that we
 * cannot see.
 */
const writerOf = (inode: number) => (line: string) => {
  const [, kind, , access, pid, file, first, last] = line.trim().split(/\s+/);
  if (kind !== "POSIX" || access !== "WRITE" || Number(file?.split(":")[2]) !== inode || Number(pid) <= 0) return null;
  return Number(first) <= WRITE_LOCK_BYTE && (last === "EOF" || Number(last) >= WRITE_LOCK_BYTE) ? Number(pid) : null;
};
