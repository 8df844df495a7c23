import { readdirSync, readFileSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";

/** Waits for a condition that no frame reports, such as a process that starts or ends. */
export async function until(what: string, holds: () => boolean | Promise<boolean>, timeoutMs = 60_000): Promise<void> {
  const end = Date.now() + timeoutMs;
  while (!(await holds())) {
    if (Date.now() > end) throw new Error(`waited ${timeoutMs} ms for: ${what}`);
    await delay(5);
  }
}

/** Returns a number of seconds for `sleep` that no other test run on this machine uses, to identify our processes. */
export const ownSeconds = (seconds: number): string => `${seconds}.${process.pid}`;

/** Returns the processes of the machine that sleep for that long, or are about to (`setsid sleep 65`). */
export const pidsSleeping = (seconds: string): number[] => pidsWith(`sleep\0${seconds}\0`);

/** Returns the processes of the machine whose command line contains this text; zombies have no command line. */
export function pidsWith(text: string): number[] {
  return [...commandLines()].flatMap(([pid, line]) => (line.includes(text) ? [pid] : []));
}

/** Returns the processes of the machine that run exactly this command. */
export function pidsRunning(...argv: string[]): number[] {
  const wanted = argv.map((word) => `${word}\0`).join("");
  return [...commandLines()].flatMap(([pid, line]) => (line === wanted ? [pid] : []));
}

function commandLines(): Map<number, string> {
  const lines = new Map<number, string>();
  for (const name of readdirSync("/proc").filter((each) => /^\d+$/.test(each))) {
    try {
      lines.set(Number(name), readFileSync(`/proc/${name}/cmdline`, "latin1"));
    } catch {
      // The process has ended.
    }
  }
  return lines;
}

/** Returns the name of a process; empty if it has ended. */
export function nameOf(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/comm`, "utf8").trim();
  } catch {
    return "";
  }
}

/** Returns a number from a process's /proc status; NaN if it has ended. */
export function statusOf(pid: number, field: string): number {
  try {
    const lines = readFileSync(`/proc/${pid}/status`, "utf8").split("\n");
    const line = lines.find((each) => each.startsWith(`${field}:`));
    return Number.parseInt(line?.split(/\s+/)[1] ?? "", 10);
  } catch {
    return Number.NaN;
  }
}

/** Returns the guest's own processes that gave themselves this name. */
export function childrenNamed(pid: number, name: string): number[] {
  const found: number[] = [];
  for (const entry of readdirSync("/proc")) {
    if (!/^\d+$/.test(entry)) continue;
    try {
      const stat = readFileSync(`/proc/${entry}/stat`, "latin1");
      const comm = stat.slice(stat.indexOf("(") + 1, stat.lastIndexOf(")"));
      const parent = Number(stat.slice(stat.lastIndexOf(")") + 2).split(" ")[1]);
      if (comm === name && parent === pid) found.push(Number(entry));
    } catch {}
  }
  return found;
}
