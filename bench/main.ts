import { writeFile } from "node:fs/promises";
import { arch, cpus, release, totalmem } from "node:os";
import { parseArgs } from "node:util";
import { benchCommandLine } from "./command-line.ts";
import { benchCommands } from "./commands.ts";
import { benchHeld } from "./held.ts";
import { runPeer } from "./peers.ts";
import { openPlace, type Place } from "./place.ts";
import { type BenchReport, held, printReport, type Row, type Target } from "./report.ts";
import { benchRuns } from "./runs.ts";
import { benchStarts } from "./starts.ts";
import { benchStreams } from "./streams.ts";

const groups: Record<string, (place: Place) => Promise<{ rows: Row[]; targets: Target[] }>> = {
  starts: benchStarts,
  commands: benchCommands,
  streams: benchStreams,
  held: benchHeld,
  "command-line": benchCommandLine,
  runs: benchRuns,
};

const { values } = parseArgs({
  options: { json: { type: "string" }, markdown: { type: "string" }, only: { type: "string", multiple: true } },
});

async function version(argv: readonly string[]): Promise<string> {
  return ((await runPeer(argv).catch(() => "absent")).split("\n")[0] ?? "").trim();
}

const report: BenchReport = {
  at: new Date().toISOString(),
  machine: { cores: cpus().length, memoryGiB: Math.round(totalmem() / 2 ** 30), kernel: release(), arch: arch(), node: process.version },
  versions: {
    docker: await version(["docker", "--version"]),
    runc: await version(["runc", "--version"]),
    crun: await version(["crun", "--version"]),
    bubblewrap: await version(["bwrap", "--version"]),
  },
  rows: [],
  targets: [],
};
{
  await using place = await openPlace();
  for (const [name, bench] of Object.entries(groups)) {
    if (values.only && !values.only.includes(name)) continue;
    process.stderr.write(`${name} …\n`);
    const { rows, targets } = await bench(place);
    report.rows.push(...rows);
    report.targets.push(...targets);
  }
}
const text = printReport(report);
process.stdout.write(`${text}\n`);
if (values.json !== undefined) await writeFile(values.json, `${JSON.stringify(report, null, 2)}\n`);
if (values.markdown !== undefined) await writeFile(values.markdown, `${text}\n`);
process.exitCode = report.targets.every(held) ? 0 : 1;
