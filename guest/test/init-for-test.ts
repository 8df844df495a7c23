import { chmodSync, mkdtempSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll } from "vitest";
import type { WorkCgroup } from "./cgroup-for-test.ts";
import { guestBinary } from "./files-client.ts";

/** Starts the guest as process 1 of separate namespaces with work cgroups, as a runtime does. Needs root. */

export const isRoot = process.getuid?.() === 0;
export const around = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc", "--net"];

export const argsFor = (work: WorkCgroup, more: string[] = []) => {
  const fds = work.procsFds.map((_, i) => 3 + i);
  return {
    args: ["--work-procs-fds", fds.join(","), "--oom-fd", String(3 + fds.length), ...more],
    extraFds: [...work.procsFds, work.oomFd],
  };
};

/** Returns the path of the guest's `sudo`, for all tests of a file. */
export function useSudo(): string {
  if (!isRoot) return "sudo";
  const tools = mkdtempSync(join(tmpdir(), "caisson-test-tools-"));
  afterAll(() => rmSync(tools, { recursive: true, force: true }));
  chmodSync(tools, 0o755);
  const sudo = join(tools, "sudo");
  symlinkSync(guestBinary, sudo);
  return sudo;
}
