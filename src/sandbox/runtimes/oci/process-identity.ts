import { readdirSync, readFileSync, readlinkSync } from "node:fs";

/** A process of the host: its number and when it started, which together are never used twice. */
export interface ProcessIdentity {
  pid: number;
  startTicks: number;
}

export function identityOfProcess(pid: number): ProcessIdentity | null {
  const stat = statOf(pid);
  return stat === null ? null : { pid, startTicks: stat.startTicks };
}

export function isAlive(process: ProcessIdentity): boolean {
  const stat = statOf(process.pid);
  return stat !== null && stat.startTicks === process.startTicks && stat.state !== "Z" && stat.state !== "X";
}

/** The name of a command may contain anything, so the fields are counted from its last parenthesis. */
function statOf(pid: number): { state: string; startTicks: number } | null {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, "latin1");
    const rest = text.slice(text.lastIndexOf(")") + 2).split(" ");
    return { state: rest[0] ?? "X", startTicks: Number(rest[19]) };
  } catch {
    return null;
  }
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
