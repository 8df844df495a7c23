import { readdirSync, readFileSync } from "node:fs";

/** The host's number of a sandbox's process 1: the guest that is the first of its own process namespace. Undefined when it is gone, or not there yet. */
export function processOne(sandbox: string): number | undefined {
  for (const pid of readdirSync("/proc").filter((name) => /^\d+$/.test(name))) {
    try {
      if (!readFileSync(`/proc/${pid}/cgroup`, "utf8").includes(sandbox)) continue;
      if (/^NSpid:.*\t1$/m.test(readFileSync(`/proc/${pid}/status`, "utf8"))) return Number(pid);
    } catch {
      // Gone meanwhile.
    }
  }
  return undefined;
}
