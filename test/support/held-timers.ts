import type { ChildProcess } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { until } from "../e2e/caisson-process.ts";

/** How far one signal moves the time of held timers. */
export const HELD_STEP_MS = 2_900;

/** Loaded before the program. Timers of a second or more wait for SIGUSR2, not for a clock. */
const holding = `
const { setTimeout, clearTimeout } = globalThis;
const held = new Map();
let nowMs = 0;
globalThis.setTimeout = (then, ms, ...values) => {
  if (!(ms >= 1000)) return setTimeout(then, ms, ...values);
  const timer = setTimeout(() => {}, 2 ** 31 - 1);
  held.set(timer, { dueMs: nowMs + ms, then: () => then(...values) });
  return timer;
};
globalThis.clearTimeout = (timer) => {
  held.delete(timer);
  clearTimeout(timer);
};
process.on("SIGUSR2", () => {
  nowMs += ${HELD_STEP_MS};
  for (const [timer, { dueMs, then }] of held) {
    if (dueMs > nowMs) continue;
    globalThis.clearTimeout(timer);
    then();
  }
  process.stderr.write("held timers: " + nowMs + " ms\\n");
});
`;

/**
 * Returns the environment in which only `advanceTimers` fires the long timers of a command. A station that starts in the
 * same environment keeps its timers.
 */
export function holdTimers(command: string, folder: string): Record<string, string> {
  const file = join(folder, `hold-timers-of-${command}.mjs`);
  writeFileSync(file, `if (process.argv[2] === ${JSON.stringify(command)}) {${holding}}\n`);
  return { NODE_OPTIONS: `--import=file://${file}` };
}

/** Moves the time of a command's held timers by one step, and waits until those that are due have fired. */
export async function advanceTimers(child: ChildProcess): Promise<void> {
  let text = "";
  const read = (chunk: Buffer) => {
    text += chunk.toString();
  };
  child.stderr?.on("data", read);
  child.kill("SIGUSR2");
  await until("the timers have fired", () => text.includes("held timers: "));
  child.stderr?.off("data", read);
}
