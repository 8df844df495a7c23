import type { HostProcess, ProcessIdentity } from "../contract/process-identity.ts";
import { bootId } from "../lib/boot-id.ts";
import { jsonOrNull } from "../lib/failures.ts";
import { hasEnded, isStopped, processStat } from "../lib/process-stat.ts";
import type { GuestCondition } from "./guest/waits.ts";

/** Returns the identity of this process. */
export function currentProcess(): ProcessIdentity {
  own ??= { pid: process.pid, startTicks: processStat(process.pid)?.startTicks ?? 0, bootId: bootId() };
  return own;
}

let own: ProcessIdentity | undefined;

/** Whether this exact process is still running. False for null, and for a process of another boot. */
export function isProcessAlive(identity: ProcessIdentity | null): boolean {
  return identity !== null && identity.bootId === bootId() && isRunning(identity);
}

/** Like `isProcessAlive`, for a process that is known to be of this boot. */
export function isRunning({ pid, startTicks }: Pick<ProcessIdentity, "pid" | "startTicks">): boolean {
  if (pid === process.pid) return startTicks === currentProcess().startTicks;
  const stat = processStat(pid);
  return !hasEnded(stat) && stat?.startTicks === startTicks;
}

/** Returns the identity of a process of this boot, or null if there is no process with this PID. */
export function startedProcess(pid: number): Pick<ProcessIdentity, "pid" | "startTicks"> | null {
  const stat = processStat(pid);
  return stat === null ? null : { pid, startTicks: stat.startTicks };
}

/** Returns the kernel's view of a guest's process. Without a start time, only its PID can be checked. */
export function conditionOfProcess({ pid, startTicks }: { pid: number; startTicks?: number }): GuestCondition {
  const stat = processStat(pid);
  if (hasEnded(stat)) return "dead";
  if (startTicks !== undefined && stat?.startTicks !== startTicks) return "dead";
  return isStopped(stat) ? "stopped" : "running";
}

/**
 * Returns whether the process that a lease names is dead for certain. We cannot tell for a process on another machine.
 */
export function isHolderGone(options: { identity: HostProcess; alive: (holder: ProcessIdentity) => boolean }, holder: string): boolean {
  const other = jsonOrNull(holder) as HostProcess | null;
  return other?.host === options.identity.host && !options.alive(other);
}
