import { readFileSync } from "node:fs";
import type { SeenProcess } from "../contract/health.ts";

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
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "latin1");
    const name = stat.slice(stat.indexOf("(") + 1, stat.lastIndexOf(")"));
    // From the third field on: names may contain anything.
    const rest = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    const command = readFileSync(`/proc/${pid}/cmdline`, "utf8").replaceAll("\0", " ").trim();
    return [
      {
        pid,
        state: rest[0] ?? "X",
        command: (command === "" ? `[${name}]` : command).slice(0, COMMAND_CHARACTERS_MAX),
        cpuMs: (Number(rest[11]) + Number(rest[12])) * TICK_MS,
        memoryBytes: Number(rest[21]) * PAGE_BYTES,
      },
    ];
  } catch {
    // It ended meanwhile.
    return [];
  }
}
