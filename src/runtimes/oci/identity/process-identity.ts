import { readdirSync, readlinkSync } from "node:fs";
import { processStat } from "../../../sandbox/process-stat.ts";

/** A process of the host: its number and when it started, which together are never used twice. */
export interface ProcessIdentity {
  pid: number;
  startTicks: number;
}

export function identityOfProcess(pid: number): ProcessIdentity | null {
  const stat = processStat(pid);
  return stat === null ? null : { pid, startTicks: stat.startTicks };
}

export function isAlive(process: ProcessIdentity): boolean {
  const stat = processStat(process.pid);
  return stat !== null && stat.startTicks === process.startTicks && stat.state !== "Z" && stat.state !== "X";
}

/** How many processes share the process namespace of the given one. */
export function processesOf(first: ProcessIdentity): number {
  const space = namespaceOf(first.pid);
  if (space === null) return 0;
  return readdirSync("/proc").filter((name) => /^\d+$/.test(name) && namespaceOf(Number(name)) === space).length;
}

function namespaceOf(pid: number): string | null {
  try {
    return readlinkSync(`/proc/${pid}/ns/pid`);
  } catch {
    return null;
  }
}
