import { z } from "zod";
import { CaissonError } from "../../contract/error/error.ts";
import type { SandboxId } from "../../contract/ids.ts";
import type { SandboxStats } from "../../contract/sandbox/sandbox.ts";
import { containerName } from "./container-config.ts";
import type { Engine } from "./engine.ts";
import { engineError, statusOf } from "./engine-error.ts";

/** The fields of the engine's stats that we use. */
const EngineStats = z.object({
  cpu_stats: z.object({ cpu_usage: z.object({ total_usage: z.number().optional() }).optional() }).optional(),
  memory_stats: z.object({ usage: z.number().optional(), stats: z.record(z.string(), z.number()).nullish() }).optional(),
  pids_stats: z.object({ current: z.number().optional() }).optional(),
});

/** Returns the engine's stats for a sandbox, guest included. Throws `lost` if the sandbox no longer exists. */
export async function sandboxStats({ engine, id }: { engine: Engine; id: SandboxId }): Promise<SandboxStats> {
  const container = engine.docker.getContainer(containerName(id));
  try {
    const [raw, inspected] = await Promise.all([
      container.stats({ stream: false, "one-shot": true }),
      container.inspect({ size: true } as Parameters<typeof container.inspect>[0] & object),
    ]);
    return statsOf(raw, "SizeRw" in inspected && typeof inspected.SizeRw === "number" ? inspected.SizeRw : null);
  } catch (error) {
    if (statusOf(error) === 404) throw new CaissonError("lost", `sandbox ${id} no longer exists`, { cause: error });
    throw engineError(error, { what: `reading the stats of sandbox ${id}`, socketPath: engine.socketPath });
  }
}

export function statsOf(raw: unknown, diskBytes: number | null): SandboxStats {
  const parsed = EngineStats.safeParse(raw);
  const figures = parsed.success ? parsed.data : {};
  const cpuNs = figures.cpu_stats?.cpu_usage?.total_usage;
  const memory = figures.memory_stats;
  // The kernel counts unneeded file pages, but reclaims them before it kills anything. cgroup v1 calls them
  // total_inactive_file.
  const reclaimable = memory?.stats?.total_inactive_file ?? memory?.stats?.inactive_file ?? 0;
  return {
    cpuMs: cpuNs === undefined ? null : cpuNs / 1e6,
    memoryBytes: memory?.usage === undefined ? null : Math.max(0, memory.usage - reclaimable),
    memoryKills: null,
    processes: figures.pids_stats?.current ?? 0,
    diskBytes,
    source: "host",
  };
}
