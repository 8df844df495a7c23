import { readdirSync, readlinkSync } from "node:fs";
import type { ProcessIdentity } from "../../../contract/process-identity.ts";

/** How many processes share the process namespace of the given one. */
export function processesOf(first: Pick<ProcessIdentity, "pid">): number {
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
