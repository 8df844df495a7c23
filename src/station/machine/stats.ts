import { readFile, statfs } from "node:fs/promises";
import { availableParallelism, freemem, loadavg, totalmem } from "node:os";
import type { MachineStats } from "../../contract/machine/machine-verbs.ts";
import { ifErrno, UNREACHABLE } from "../../lib/failures.ts";
import type { PoolSize } from "../../sandbox/runtime.ts";
import type { RuntimeSet } from "../../sandbox/runtime-set.ts";
import type { Station } from "../../verbs/station.ts";

interface StatsOptions {
  stateDir: string;
  station: Pick<Station, "sandboxes" | "runs">;
  runtimes: RuntimeSet;
}

/** See `MachineVerbs.stats`. */
export async function statsOf({ stateDir, station, runtimes }: StatsOptions): Promise<MachineStats> {
  const [{ sandboxes }, open, ended, disk, availableBytes, pool] = await Promise.all([
    station.sandboxes.list({ sweep: false }),
    station.runs.list({ state: "open", limit: 1 }),
    station.runs.list({ state: "ended", limit: 1 }),
    statfs(stateDir),
    availableMemory(),
    readPool(runtimes),
  ]);
  const count = (state: string) => sandboxes.filter((sandbox) => sandbox.state === state).length;
  const [running, paused] = [count("running"), count("paused")];
  const [one = 0, five = 0, fifteen = 0] = loadavg();
  return {
    cpu: { cores: availableParallelism(), load: [one, five, fifteen] },
    memory: { bytes: totalmem(), availableBytes },
    disk: { bytes: disk.blocks * disk.bsize, availableBytes: disk.bavail * disk.bsize },
    sandboxes: { running, paused, other: sandboxes.length - running - paused },
    runs: { open: open.total, ended: ended.total },
    pool,
  };
}

/** Returns the memory that is available without swapping: caches can be dropped, but do not count as free. */
async function availableMemory(): Promise<number> {
  const text = await ifErrno(readFile("/proc/meminfo", "utf8"), UNREACHABLE, "");
  const kib = /^MemAvailable:\s+(\d+) kB$/m.exec(text)?.[1];
  return kib === undefined ? freemem() : Number(kib) * 1024;
}

async function readPool(runtimes: RuntimeSet): Promise<MachineStats["pool"]> {
  const all = await Promise.all(runtimes.names.map(async (name) => (await runtimes.get(name)).pooled?.()));
  const pools = all.filter((pool) => pool !== undefined && pool.size > 0) as PoolSize[];
  if (pools.length === 0) return null;
  const sum = (of: keyof PoolSize) => pools.reduce((total, pool) => total + pool[of], 0);
  return { waiting: sum("waiting"), size: sum("size"), ready: sum("ready"), fresh: sum("fresh") };
}
