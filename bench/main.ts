import { writeFile } from "node:fs/promises";
import { arch, cpus, release, totalmem } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { runPeer } from "./peers.ts";
import { type BenchReport, held, printReport } from "./report.ts";

const groups = [
  "starts",
  "commands",
  "streams",
  "held",
  "command-line",
  "snapshots",
  "runs",
  "many-runs",
  "guardian",
  "workflows",
  "stored-runs",
  "fan-out",
  "station",
  "station-load",
  "network",
  "diff",
  "console",
];

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
for (const name of groups) {
  if (values.only && !values.only.includes(name)) continue;
  process.stderr.write(`${name} …\n`);
  const output = await runPeer([process.execPath, "--expose-gc", join(import.meta.dirname, "group.ts"), name]);
  const { rows, targets } = JSON.parse(output) as Pick<BenchReport, "rows" | "targets">;
  report.rows.push(...rows);
  report.targets.push(...targets);
}
const text = printReport(report);
process.stdout.write(`${text}\n`);
if (values.json !== undefined) await writeFile(values.json, `${JSON.stringify(report, null, 2)}\n`);
if (values.markdown !== undefined) await writeFile(values.markdown, `${text}\n`);
process.exitCode = report.targets.every(held) ? 0 : 1;
