import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { SandboxConfig, type SandboxConfigInput } from "../../contract/sandbox/sandbox.ts";
import { runCommand } from "../../sandbox/run-command.ts";
import type { OwnedSandbox } from "../../sandbox/sandbox.ts";
import type { SandboxRecord } from "../../sandbox/store.ts";
import { createOciContext } from "./oci-context.ts";
import type { OciOptions } from "./runtime.ts";

export const guestPath = join(import.meta.dirname, "../../../guest/build/caisson-guest");
export const settings: OciOptions = { home: "/root", path: process.env.PATH ?? "" };
export const asRoot = process.getuid?.() === 0;

export const configOf = (input: SandboxConfigInput = {}) => SandboxConfig.parse(input);
export const sh = async (sandbox: OwnedSandbox, script: string, user?: string) => {
  const { ended, stdout, stderr } = await runCommand(sandbox, { argv: ["sh", "-c", script], ...(user === undefined ? {} : { user }) });
  return { ended, text: stdout.trim(), complaint: stderr };
};
export const recordIn = (stateDir: string, id: string) =>
  JSON.parse(readFileSync(join(stateDir, "sandboxes", id, "sandbox.json"), "utf8")) as SandboxRecord;

/** Returns everything that sandboxes could leave on the host. */
export function remainsOf(stateDir: string) {
  const oci = createOciContext({ stateDir, guestPath }, settings);
  const groups = oci.cgroups().parents.flatMap(({ dir }) => {
    const ours = join(dir, oci.cgroupName);
    return existsSync(ours) ? [ours, ...readdirSync(ours).filter((name) => name.startsWith("sb_"))] : [];
  });
  const processes = readdirSync("/proc").filter((pid) => /^\d+$/.test(pid) && usesState(stateDir, pid));
  return {
    groups,
    processes,
    mounts: readFileSync("/proc/self/mountinfo", "latin1")
      .split("\n")
      .filter((line) => line.includes(stateDir) || line.includes("- overlay caisson")),
    folders: ["sandboxes", "snapshots", "layers"].flatMap((name) =>
      existsSync(join(stateDir, name)) ? readdirSync(join(stateDir, name)) : [],
    ),
    loops: readdirSync("/sys/block").filter(
      (name) => name.startsWith("loop") && readOrEmpty(`/sys/block/${name}/loop/backing_file`).startsWith(stateDir),
    ),
  };
}
export const nothing = { groups: [], processes: [], mounts: [], folders: [], loops: [] };

/** Whether a process is a guest of one of our sandboxes: its command line and its control group show it. */
function usesState(stateDir: string, pid: string): boolean {
  return (
    readOrEmpty(`/proc/${pid}/cmdline`).startsWith("/.caisson/guest\0") &&
    readOrEmpty(`/proc/${pid}/cgroup`).includes(createOciContext({ stateDir, guestPath }, settings).cgroupName)
  );
}
function readOrEmpty(path: string): string {
  try {
    return readFileSync(path, "latin1");
  } catch {
    return "";
  }
}
