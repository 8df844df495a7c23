import { closeSync, existsSync, mkdirSync, openSync, readFileSync, rmdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";

/** Work cgroups as a runtime creates them, in whichever layout this machine has. Needs root. */
export interface WorkCgroup extends AsyncDisposable {
  /** The value of `--work-procs-fds`. */
  readonly procsFds: number[];
  /** The value of `--oom-fd`. */
  readonly oomFd: number;
  /** Returns the host pids of the processes in it. */
  members(): number[];
}

export function makeWorkCgroup(options: { pidsMax: number; memoryBytes: number }): WorkCgroup {
  const name = `caisson-test-${process.pid}-${Math.random().toString(36).slice(2, 8)}`;
  const root = "/sys/fs/cgroup";
  const unified = existsSync(join(root, "cgroup.controllers"));
  const pids = join(root, unified ? name : `pids/${name}`);
  const memory = join(root, unified ? name : `memory/${name}`);
  const folders = [...new Set([pids, memory])];
  for (const folder of folders) mkdirSync(folder);
  writeFileSync(join(pids, "pids.max"), String(options.pidsMax));
  writeFileSync(join(memory, unified ? "memory.max" : "memory.limit_in_bytes"), String(options.memoryBytes));
  const swap = join(memory, unified ? "memory.swap.max" : "memory.memsw.limit_in_bytes");
  if (existsSync(swap)) writeFileSync(swap, String(unified ? 0 : options.memoryBytes));
  const procsFds = folders.map((folder) => openSync(join(folder, "cgroup.procs"), "w"));
  const oomFd = openSync(join(memory, unified ? "memory.events" : "memory.oom_control"), "r");
  const members = () => readFileSync(join(pids, "cgroup.procs"), "utf8").split("\n").filter(Boolean).map(Number);
  return {
    procsFds,
    oomFd,
    members,
    async [Symbol.asyncDispose]() {
      for (const fd of [...procsFds, oomFd]) closeSync(fd);
      for (const folder of folders) {
        // The kernel takes a moment to release the last member.
        for (let left = 200; ; left--) {
          try {
            rmdirSync(folder);
            break;
          } catch (error) {
            if (left === 0) throw error;
            await delay(10);
          }
        }
      }
    },
  };
}
