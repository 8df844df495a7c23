import { readFileSync } from "node:fs";
import type { GuestCondition } from "./guest/waits.ts";

/** State and start time of a process from /proc, or null when there is none. The command's name may contain anything, so fields are counted from the last parenthesis. */
export function processStat(pid: number): { state: string; startTicks: number } | null {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "latin1");
    const rest = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    return { state: rest[0] ?? "X", startTicks: Number(rest[19]) };
  } catch {
    return null;
  }
}

/** What the kernel says of a guest's process. Without a start time the number alone has to do. */
export function conditionOfProcess({ pid, startTicks }: { pid: number; startTicks?: number }): GuestCondition {
  const stat = processStat(pid);
  if (stat === null || stat.state === "Z" || stat.state === "X") return "dead";
  if (startTicks !== undefined && stat.startTicks !== startTicks) return "dead";
  return stat.state === "T" || stat.state === "t" ? "stopped" : "running";
}
