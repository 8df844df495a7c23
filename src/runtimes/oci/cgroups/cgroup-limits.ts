import { join } from "node:path";
import { CaissonError } from "../../../contract/error/error.ts";
import type { CgroupFolder } from "./cgroup.ts";
import { put, putIfThere, read } from "./cgroup-files.ts";

export interface CgroupLimits {
  cpus: number | null;
  memoryBytes: number | null;
  pids: number | null;
}

/** What the guest may use in addition to the limit of the work: its buffers, and the OCI runtime during the start. */
const GUEST_MEMORY_BYTES = 256 * 1024 * 1024;
const GUEST_PIDS = 512;
const CPU_PERIOD_US = 100_000;

/** Sets the limits of the work and the guest. May be called again with other limits while they run. */
export function limitCgroups(folders: readonly CgroupFolder[], limits: CgroupLimits): void {
  for (const folder of folders) {
    const has = (controller: string) => folder.controllers.includes(controller);
    const work = join(folder.dir, "work");
    const guest = join(folder.dir, "guest");
    try {
      if (has("memory")) {
        limitMemory(folder.version, work, limits.memoryBytes);
        limitMemory(folder.version, guest, GUEST_MEMORY_BYTES);
      }
      if (has("pids")) {
        put(join(work, "pids.max"), limits.pids ?? "max");
        put(join(guest, "pids.max"), GUEST_PIDS);
      }
      if (has("cpu")) limitCpu(folder.version, work, limits.cpus);
    } catch (cause) {
      throw new CaissonError("unavailable", `cannot write limits to ${folder.dir}`, { cause });
    }
  }
}

function limitMemory(version: 1 | 2, dir: string, bytes: number | null): void {
  if (version === 2) {
    put(join(dir, "memory.max"), bytes ?? "max");
    putIfThere(join(dir, "memory.swap.max"), bytes === null ? "max" : 0);
    return;
  }
  // The limit for memory plus swap must never be less than that for memory alone. To raise both, we raise the sum
  // first.
  const both = join(dir, "memory.memsw.limit_in_bytes");
  const raising = Number(read(join(dir, "memory.limit_in_bytes")) ?? 0) < (bytes ?? Number.MAX_SAFE_INTEGER);
  if (raising) putIfThere(both, bytes ?? -1);
  put(join(dir, "memory.limit_in_bytes"), bytes ?? -1);
  putIfThere(both, bytes ?? -1);
  putIfThere(join(dir, "memory.swappiness"), 0);
}

function limitCpu(version: 1 | 2, dir: string, cpus: number | null): void {
  const quota = cpus === null ? null : Math.max(1000, Math.round(cpus * CPU_PERIOD_US));
  if (version === 2) put(join(dir, "cpu.max"), `${quota ?? "max"} ${CPU_PERIOD_US}`);
  else {
    put(join(dir, "cpu.cfs_period_us"), CPU_PERIOD_US);
    put(join(dir, "cpu.cfs_quota_us"), quota ?? -1);
  }
}
