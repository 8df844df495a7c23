import type { SandboxStats } from "../../contract/sandbox.ts";
import { showBytes, showDuration } from "../../lib/quantity.ts";
import type { ParsedArguments } from "../command.ts";
import type { CliContext } from "../context.ts";
import { table } from "../terminal/table.ts";

/** `caisson stats [ID…]`: of these sandboxes, or of the machine. */
export async function run(context: CliContext, given: ParsedArguments): Promise<number> {
  if (given.positionals.length === 0) return await machineStats(context, given);
  const all: ({ id: string } & SandboxStats)[] = [];
  for (const id of given.positionals) all.push({ id, ...(await context.station.sandboxes.stats(id)) });
  if (given.flag("json")) {
    await context.stdout.printJson(all);
    return 0;
  }
  const rows = all.map((stats) => [
    stats.id,
    stats.cpuMs === null ? "–" : showDuration(stats.cpuMs),
    showBytes(stats.memoryBytes),
    String(stats.processes),
    showBytes(stats.diskBytes),
    stats.memoryKills === null ? "–" : String(stats.memoryKills),
    stats.source,
  ]);
  await context.stdout.print(table([["ID", "CPU", "MEMORY", "PROCESSES", "DISK", "OUT-OF-MEMORY KILLS", "SOURCE"], ...rows]));
  return 0;
}

async function machineStats(context: CliContext, given: ParsedArguments): Promise<number> {
  const stats = await context.station.machine.stats();
  if (given.flag("json")) {
    await context.stdout.printJson(stats);
    return 0;
  }
  const { cpu, memory, disk, sandboxes, runs, pool } = stats;
  const used = ({ bytes, availableBytes }: { bytes: number; availableBytes: number }) =>
    `${showBytes(bytes - availableBytes)} of ${showBytes(bytes)}`;
  await context.stdout.print(
    table([
      ["processors", `${cpu.cores}, load ${cpu.load.map((each) => each.toFixed(2)).join(" ")}`],
      ["memory", used(memory)],
      ["disk", used(disk)],
      ["sandboxes", `${sandboxes.running} running, ${sandboxes.paused} paused, ${sandboxes.other} other`],
      ["runs", `${runs.open} open, ${runs.ended} ended`],
      ["pool", pool === null ? "none" : `${pool.waiting} of ${pool.size} ready`],
    ]),
  );
  return 0;
}
