import { readFileSync } from "node:fs";
import type { SeenProcess } from "../contract/health/health.ts";
import { ifErrnoSync } from "../lib/failures.ts";
import { processStat } from "../lib/process-stat.ts";

const PROCESSES_MAX = 200;
const COMMAND_CHARACTERS_MAX = 300;
/** The values of `sysconf(_SC_CLK_TCK)` and the page size on every Linux that Node runs on. */
const TICK_MS = 10;
const PAGE_BYTES = 4096;

/**
 * Returns processes as the kernel shows them to the host, without asking the guest. Their command lines are untrusted:
 * a process sets its own.
 */
export function seenProcesses(pids: readonly number[]): SeenProcess[] {
  return pids.slice(0, PROCESSES_MAX).flatMap(seenProcess);
}

function seenProcess(pid: number): SeenProcess[] {
  const stat = processStat(pid);
  if (stat === null) return [];
  const text = ifErrnoSync(() => readFileSync(`/proc/${pid}/cmdline`, "utf8"), ["ENOENT", "ESRCH"], null);
  if (text === null) return [];
  const command = text.replaceAll("\0", " ").trim();
  return [
    {
      pid,
      state: stat.state,
      command: (command === "" ? `[${stat.name}]` : command).slice(0, COMMAND_CHARACTERS_MAX),
      cpuMs: stat.cpuTicks * TICK_MS,
      memoryBytes: stat.residentPages * PAGE_BYTES,
    },
  ];
}
