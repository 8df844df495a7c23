import type { ProcessIdentity } from "../contract/process-identity.ts";
import { bootId } from "../lib/boot-id.ts";
import { hasEnded, isStopped, processStat } from "../lib/process-stat.ts";
import type { GuestCondition } from "./guest/waits.ts";

/** This process. */
export function currentProcess(): ProcessIdentity {
  own ??= { pid: process.pid, startTicks: processStat(process.pid)?.startTicks ?? 0, bootId: bootId() };
  return own;
}

let own: ProcessIdentity | undefined;

/** Whether the very process is still there; never for none, nor for one of another boot. */
export function isProcessAlive(identity: ProcessIdentity | null): boolean {
  return identity !== null && identity.bootId === bootId() && isRunning(identity);
}

/** The same for a process that is known to be of this boot. */
export function isRunning({ pid, startTicks }: Pick<ProcessIdentity, "pid" | "startTicks">): boolean {
  if (pid === process.pid) return startTicks === currentProcess().startTicks;
  const stat = processStat(pid);
  return !hasEnded(stat) && stat?.startTicks === startTicks;
}

/** A process of this boot, or null when there is none with this number. */
export function startedProcess(pid: number): Pick<ProcessIdentity, "pid" | "startTicks"> | null {
  const stat = processStat(pid);
  return stat === null ? null : { pid, startTicks: stat.startTicks };
}

/** What the kernel says of a guest's process. Without a start time the number alone has to do. */
export function conditionOfProcess({ pid, startTicks }: { pid: number; startTicks?: number }): GuestCondition {
  const stat = processStat(pid);
  if (hasEnded(stat)) return "dead";
  if (startTicks !== undefined && stat?.startTicks !== startTicks) return "dead";
  return isStopped(stat) ? "stopped" : "running";
}
