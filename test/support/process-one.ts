import { readdirSync, readFileSync } from "node:fs";

/**
 * Returns the host's pid of a sandbox's process 1: the guest, which is the first in its process namespace. Undefined if
 * it has ended or not started yet.
 */
export function processOne(sandbox: string): number | undefined {
  for (const pid of readdirSync("/proc").filter((name) => /^\d+$/.test(name))) {
    try {
      if (!readFileSync(`/proc/${pid}/cgroup`, "utf8").includes(sandbox)) continue;
      if (/^NSpid:.*\t1$/m.test(readFileSync(`/proc/${pid}/status`, "utf8"))) return Number(pid);
    } catch {
      // The process has ended.
    }
  }
  return undefined;
}
