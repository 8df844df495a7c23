import { spawn } from "node:child_process";
import { once } from "node:events";
import { copyFile, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { hasEnded, isProcessRunning, isStopped, processStat } from "./process-stat.ts";
import { withoutFileHandles } from "./testing-lib.ts";

test("reports a process's parent, start time, CPU time and memory", () => {
  const own = processStat(process.pid);
  expect(own).toMatchObject({ parent: process.ppid, state: expect.stringMatching(/^[RSD]$/) });
  expect(own?.startTicks).toBeGreaterThan(0);
  expect(own?.cpuTicks).toBeGreaterThan(0);
  expect(own?.residentPages).toBeGreaterThan(100);
});

test("parses a process whose name looks like stat fields", async () => {
  const folder = await mkdtemp(join(tmpdir(), "process-stat-"));
  const program = join(folder, "a) Z 1 (b");
  await copyFile("/bin/sleep", program);
  const child = spawn(program, ["60"], { argv0: "sleep" });
  const exited = once(child, "exit");
  try {
    await once(child, "spawn");
    const now = () => processStat(child.pid ?? 0);
    expect(now()).toMatchObject({ name: "a) Z 1 (b", parent: process.pid });
    expect([hasEnded(now()), isStopped(now())]).toEqual([false, false]);
    child.kill("SIGSTOP");
    await expect.poll(() => isStopped(now())).toBe(true);
  } finally {
    child.kill("SIGKILL");
    await exited;
    await rm(folder, { recursive: true, force: true });
  }
  expect(processStat(child.pid ?? 0)).toBe(null);
  expect([hasEnded(null), isStopped(null)]).toEqual([true, false]);
});

test("detects whether a process has a terminal", async () => {
  const inTerminal = spawn("script", ["-qfec", "echo $$; exec sleep 60", "/dev/null"], {
    stdio: ["ignore", "pipe", "ignore"],
    detached: true,
  });
  try {
    const [output] = (await once(inTerminal.stdout, "data")) as [Buffer];
    expect(processStat(Number(output.toString()))?.hasTerminal).toBe(true);
    // Detached, it leads its own session.
    expect(processStat(inTerminal.pid ?? 0)?.hasTerminal).toBe(false);
  } finally {
    inTerminal.kill("SIGKILL");
    await once(inTerminal, "close");
  }
});

test("counts a zombie as ended", async () => {
  // The shell replaces itself with a program that never reaps its children.
  const parent = spawn("sh", ["-c", "sleep 0.3 & echo $!; exec sleep 60"], { stdio: ["ignore", "pipe", "ignore"] });
  const exited = once(parent, "exit");
  try {
    const [text] = (await once(parent.stdout, "data")) as [Buffer];
    const pid = Number(text.toString());
    await expect.poll(() => processStat(pid)?.state).toBe("Z");
    expect([isProcessRunning(pid), isProcessRunning(process.pid)]).toEqual([false, true]);
  } finally {
    parent.kill("SIGKILL");
    await exited;
  }
});

test("does not report a process as dead when too many files are open", async () => {
  const module = new URL("./process-stat.ts", import.meta.url);
  expect(await withoutFileHandles(module, "own.isProcessRunning(process.pid)")).toBe("EMFILE");
});
