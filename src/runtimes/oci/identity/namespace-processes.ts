import { readdirSync, readlinkSync } from "node:fs";
import type { ProcessIdentity } from "../../../contract/process-identity.ts";
import { ifErrnoSync, UNREACHABLE } from "../../../lib/failures.ts";

/** Returns the processes in the same pid namespace as the given one. */
export function processesOf(first: Pick<ProcessIdentity, "pid">): number[] {
  const space = namespaceOf(first.pid);
  if (space === null) return [];
  const pids = readdirSync("/proc").filter((name) => /^\d+$/.test(name));
  return pids.map(Number).filter((pid) => namespaceOf(pid) === space);
}

function namespaceOf(pid: number): string | null {
  return ifErrnoSync(() => readlinkSync(`/proc/${pid}/ns/pid`), [...UNREACHABLE, "ESRCH"], null);
}
