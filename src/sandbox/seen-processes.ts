import { readFileSync } from "node:fs";
import type { SeenProcess } from "../contract/health.ts";
import { processStat } from "../lib/process-stat.ts";

const PROCESSES_MAX = 200;
const COMMAND_CHARACTERS_MAX = 300;
/** As `sysconf(_SC_CLK_TCK)` and the page size are on every Linux that Node runs on. */
const TICK_MS = 10;
const PAGE_BYTES = 4096;

/**
 * Processes as the kernel shows them to the host, nobody inside being asked. What they call themselves is their own
 * choice.
 */
export function seenProcesses(pids: readonly number[]): SeenProcess[] {
  return pids.slice(0, PROCESSES_MAX).flatMap(seenProcess);
}

function seenProcess(pid: number): SeenProcess[] {
  const stat = processStat(pid);
  if (stat === null) return [];
  try {
    const command = readFileSync(`/proc/${pid}/cmdline`, "utf8").replaceAll("\0", " ").trim();
    return [
      {
        pid,
        state: stat.state,
        command: (command === "" ? `[${stat.name}]` : command).slice(0, COMMAND_CHARACTERS_MAX),
        cpuMs: stat.cpuTicks * TICK_MS,
        memoryBytes: stat.residentPages * PAGE_BYTES,
      },
    ];
  } catch {
    // It ended meanwhile.
    return [];
  }
}
