import { mkdirSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, vi } from "vitest";

/**
 * Each end-to-end file gets its own temporary folder, which its processes inherit, and fails if a process, a mount or a
 * folder of it is still there after its last hook.
 */
const run = tmpdir();
// Short, because a socket path has at most 107 bytes, and Podman's folder at most 50.
const own = join(run, process.pid.toString(36));
mkdirSync(own, { mode: 0o1777 });
process.env.TMPDIR = own;
// What Node compiles is the same for every file.
process.env.NODE_COMPILE_CACHE ??= join(run, "node-compile-cache");

afterAll(async () => {
  process.env.TMPDIR = run;
  // A process that was just killed takes a moment to be reaped.
  await vi.waitFor(() => expect([...processes(), ...mounts()], "left behind by this file").toEqual([]), { timeout: 45_000, interval: 100 });
  const folders = readdirSync(own).filter((name) => name.startsWith("caisson-"));
  rmSync(own, { recursive: true, force: true });
  expect(folders, "folders left behind by this file").toEqual([]);
});

/** Finds processes by their inherited environment, and a sandbox's by the state folder that is mounted into them. */
function processes(): string[] {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name) && Number(name) !== process.pid)
    .filter((pid) => read(pid, "environ").split("\0").includes(`TMPDIR=${own}`) || read(pid, "mountinfo").includes(`${own}/`))
    .map((pid) => `process ${pid}: ${read(pid, "cmdline").replaceAll("\0", " ").slice(0, 160)}`);
}

function mounts(): string[] {
  return readFileSync("/proc/self/mountinfo", "utf8")
    .split("\n")
    .map((line) => line.split(" ")[4] ?? "")
    .filter((place) => place.startsWith(`${own}/`))
    .map((place) => `mount ${place}`);
}

function read(pid: string, name: string): string {
  try {
    return readFileSync(join("/proc", pid, name), "utf8");
  } catch {
    // It ended while we looked.
    return "";
  }
}
