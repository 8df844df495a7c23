import type { SandboxStats } from "../../contract/sandbox.ts";
import { showBytes, showDuration } from "../../lib/quantity.ts";
import type { ParsedArguments } from "../command.ts";
import type { CliContext } from "../context.ts";
import { table } from "../terminal/table.ts";

export async function run(context: CliContext, given: ParsedArguments): Promise<number> {
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
