import { readFileSync } from "node:fs";
import { ifErrnoSync, UNREACHABLE } from "./failures.ts";

/** The fields of `/proc/PID/stat` that we use; see proc(5). */
export interface ProcessStat {
  /** The name that the process gave itself. It may contain anything. */
  name: string;
  /** One letter: `R`, `S`, `D`, `T` … */
  state: string;
  parent: number;
  hasTerminal: boolean;
  cpuTicks: number;
  /** Start time since boot. Together with the pid it identifies a process permanently, since pids are reused. */
  startTicks: number;
  residentPages: number;
}

/**
 * Returns null if the process does not exist. Throws other failures: too many open files must not make a process look
 * dead.
 */
export function processStat(pid: number): ProcessStat | null {
  const text = ifErrnoSync(() => readFileSync(`/proc/${pid}/stat`, "latin1"), [...UNREACHABLE, "ESRCH"], null);
  if (text === null) return null;
  // The name may contain blanks and parentheses, so the fields start after the last parenthesis.
  const end = text.lastIndexOf(")");
  const [state = "", ...rest] = text.slice(end + 2).split(" ");
  const field = (index: number) => Number(rest[index]);
  return {
    name: text.slice(text.indexOf("(") + 1, end),
    state,
    parent: field(0),
    hasTerminal: field(3) !== 0,
    cpuTicks: field(10) + field(11),
    startTicks: field(18),
    residentPages: field(20),
  };
}

/** Returns whether the process no longer exists or is a zombie. */
export const hasEnded = (stat: ProcessStat | null): boolean => stat === null || ["Z", "X", ""].includes(stat.state);

/** Returns whether a process with this pid is running. A zombie is not. */
export const isProcessRunning = (pid: number): boolean => !hasEnded(processStat(pid));

/** Returns whether a signal or a debugger stopped the process: it does not respond until it is continued. */
export const isStopped = (stat: ProcessStat | null): boolean => stat?.state === "T" || stat?.state === "t";
