import { readFileSync, statSync } from "node:fs";
import { ignoring } from "../../lib/failures.ts";
import { isStopped, processStat } from "../../lib/process-stat.ts";

/** The byte of the shared-memory file that a writer in WAL mode locks, according to SQLite's file format. */
const WRITE_LOCK_BYTE = 120;

/**
 * Returns the pid of the process that is writing to the database at `path`; null if no process is writing, or if we
 * cannot see that process.
 */
export function lockHolder(path: string): number | null {
  const pids = ignoring("the holder is a detail of another error", () => {
    const { ino } = statSync(`${path}-shm`);
    return readFileSync("/proc/locks", "utf8").split("\n").map(writerOf(ino));
  });
  return pids?.find((pid) => pid !== null) ?? null;
}

/**
 * Describes the process for the waiting user: someone who pressed Ctrl-Z in another window must learn that this is why
 * everything waits.
 */
export function describeLockHolder(path: string): string {
  const pid = lockHolder(path);
  if (pid === null) return "another process";
  return isStopped(processStat(pid)) ? `process ${pid}, which is stopped (\`kill -CONT ${pid}\` continues it),` : `process ${pid}`;
}

/**
 * Parses a line such as `1: POSIX  ADVISORY  WRITE 4711 fe:00:2146592 120 120`. A pid of 0 or less is in a namespace
 * that we cannot see.
 */
const writerOf = (inode: number) => (line: string) => {
  const [, kind, , access, pid, file, first, last] = line.trim().split(/\s+/);
  if (kind !== "POSIX" || access !== "WRITE" || Number(file?.split(":")[2]) !== inode || Number(pid) <= 0) return null;
  return Number(first) <= WRITE_LOCK_BYTE && (last === "EOF" || Number(last) >= WRITE_LOCK_BYTE) ? Number(pid) : null;
};
