import { readFileSync } from "node:fs";

/** A process as `/proc/PID/stat` tells of it, as far as we have a use for it; see proc(5). */
export interface ProcessStat {
  /** What it calls itself: its own choice, and it may contain anything. */
  name: string;
  /** One letter: `R`, `S`, `D`, `T` … */
  state: string;
  parent: number;
  hasTerminal: boolean;
  cpuTicks: number;
  /** Since the machine's start. With the number it names one process for ever, since numbers are given out again. */
  startTicks: number;
  residentPages: number;
}

/** Null when there is no such process. */
export function processStat(pid: number): ProcessStat | null {
  let text: string;
  try {
    text = readFileSync(`/proc/${pid}/stat`, "latin1");
  } catch {
    return null;
  }
  // The name may contain blanks and parentheses, so fields are counted from the last one on.
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

/** Whether it is gone, or only waits for its parent to notice. */
export const hasEnded = (stat: ProcessStat | null): boolean => stat === null || ["Z", "X", ""].includes(stat.state);

/** Whether a process with this number runs. A zombie does not. */
export const isProcessRunning = (pid: number): boolean => !hasEnded(processStat(pid));

/** Whether a signal or a debugger stopped it: it answers nobody until it is told to go on. */
export const isStopped = (stat: ProcessStat | null): boolean => stat?.state === "T" || stat?.state === "t";
