import type { DiskUsage } from "../../contract/machine/machine-verbs.ts";
import { showBytes } from "../../lib/quantity.ts";
import type { ParsedArguments } from "../command.ts";
import type { CliContext } from "../context.ts";
import { line } from "../terminal/line.ts";
import { table } from "../terminal/table.ts";

/** An older station names other kinds. */
const what: Readonly<Record<DiskUsage["kind"], string>> & Readonly<Record<string, string | undefined>> = {
  sandboxes: "sandboxes",
  snapshots: "snapshots",
  sessions: "sessions, including the changes of runs",
  log: "run logs",
  images: "unpacked images",
  templates: "copies of this machine's system, recreated when needed",
  builds: "templates and steps of builds; their files are snapshots",
  mirrors: "repositories that runs started from",
  packages: "packages from registries, fetched again when needed",
  uploads: "folders that were sent from other machines",
  artifacts: "files that programs in sandboxes stored",
  ships: "commits of ships",
  other: "everything else",
};
const counted: ReadonlySet<DiskUsage["kind"]> = new Set([
  ...(["sandboxes", "snapshots", "sessions", "images", "templates", "mirrors", "uploads", "artifacts", "ships"] as const),
]);

/** `caisson df` */
export async function runDf(context: CliContext, args: ParsedArguments): Promise<number> {
  const usage = await context.station.machine.usage();
  if (args.flag("json")) {
    await context.stdout.printJson(usage);
    return 0;
  }
  const rows = usage.kinds.map(({ kind, count, bytes }) => [showBytes(bytes), counted.has(kind) ? String(count) : "–", what[kind] ?? kind]);
  await context.stdout.print(table([["SIZE", "COUNT", "WHAT"], ...rows]));
  await context.stdout.print(line`${showBytes(usage.bytes)}${usage.isMinimum ? " or more" : ""} in ${usage.stateDir}`);
  return 0;
}
