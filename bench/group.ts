import type { Row, Target } from "./report.ts";

/**
 * Measures one group in a separate process that loads nothing else: one group's effect on the memory of its process
 * must not affect the next. Prints JSON.
 */
const groups: Record<string, () => Promise<{ rows: Row[]; targets: Target[] }>> = {
  starts: async () => await inPlace((await import("./starts.ts")).benchStarts),
  commands: async () => await inPlace((await import("./commands.ts")).benchCommands),
  streams: async () => await inPlace((await import("./streams.ts")).benchStreams),
  held: async () => await inPlace((await import("./held.ts")).benchHeld),
  "command-line": async () => await inPlace((await import("./command-line.ts")).benchCommandLine),
  snapshots: async () => await inPlace((await import("./snapshots.ts")).benchSnapshots),
  runs: async () => await (await import("./runs.ts")).benchRuns(),
  "many-runs": async () => await (await import("./many-runs.ts")).benchManyRuns(),
  guardian: async () => await (await import("./guardian.ts")).benchGuardian(),
  workflows: async () => await (await import("./workflows.ts")).benchWorkflows(),
  "fan-out": async () => await (await import("./fan-out.ts")).benchFanOut(),
  "stored-runs": async () => await (await import("./stored-runs.ts")).benchStoredRuns(),
  station: async () => await (await import("./station.ts")).benchStation(),
  "station-load": async () => await (await import("./station-load.ts")).benchStationLoad(),
  network: async () => await (await import("./network.ts")).benchNetwork(),
  diff: async () => await (await import("./diff.ts")).benchDiff(),
  console: async () => await (await import("./console.ts")).benchConsole(),
};

async function inPlace<Result>(bench: (place: import("./place.ts").Place) => Promise<Result>): Promise<Result> {
  const { openPlace } = await import("./place.ts");
  await using place = await openPlace();
  return await bench(place);
}

const bench = groups[process.argv[2] ?? ""];
if (!bench) throw new Error(`there is no group ${process.argv[2]}; there are: ${Object.keys(groups).join(", ")}`);
const { rows, targets } = await bench();
process.stdout.write(JSON.stringify({ rows, targets }));
