import { CaissonError } from "../../contract/error/error.ts";
import type { SandboxInfo, SandboxStats } from "../../contract/sandbox/sandbox.ts";
import { defined } from "../../lib/defined.ts";
import { ignore } from "../../lib/failures.ts";
import { showBytes, showDuration } from "../../lib/quantity.ts";
import type { ParsedArguments } from "../command.ts";
import type { CliContext } from "../context.ts";
import { listFrom } from "../options/parse-list-filter.ts";
import { printResult, removeNamed } from "../print-result.ts";
import { line } from "../terminal/line.ts";
import { table } from "../terminal/table.ts";
import { agreesToEnd } from "./changed-sandboxes.ts";

/** `caisson sandbox ls` */
export async function listSandboxes(context: CliContext, args: ParsedArguments): Promise<number> {
  const { sandboxes, damaged } = await context.station.sandboxes.list(listFrom(args));
  const headings = ["ID", "NAME", "RUNTIME", "STATE", "AGE", "KEPT", "WORKSPACE", "LABELS"];
  await printResult(context, args, {
    json: sandboxes,
    text:
      sandboxes.length === 0
        ? line`No sandboxes. Create one that stays: caisson sandbox create`
        : table([headings, ...sandboxes.map(sandboxRow)]),
  });
  for (const record of damaged) await context.stderr.print(line`caisson: ${record.dir} is damaged: ${record.reason}`);
  return 0;
}

function sandboxRow({ id, name, runtime, state, health, keep, ...info }: SandboxInfo): string[] {
  const labels = Object.entries(info.labels).map(([key, value]) => `${key}=${value}`);
  const workspace = info.workspace.kind === "empty" ? "–" : `${info.workspace.path}:${info.workspace.access}`;
  const age = showDuration(Math.max(0, Date.now() - Date.parse(info.createdAt)));
  const stateText = health === undefined ? state : `${state}, ${health}`;
  return [id, name ?? "–", runtime, stateText, age, keep ? "yes" : "no", workspace, labels.join(" ")];
}

/** `caisson stats [ID…]`: shows the usage of these sandboxes, or of the machine. */
export async function showStats(context: CliContext, args: ParsedArguments): Promise<number> {
  if (args.positionals.length === 0) return await showMachineStats(context, args);
  const all: ({ id: string } & SandboxStats)[] = [];
  for (const id of args.positionals) all.push({ id, ...(await context.station.sandboxes.stats(id)) });
  const rows = all.map(({ id, cpuMs, memoryBytes, processes, diskBytes, memoryKills, source }) => [
    id,
    cpuMs === null ? "–" : showDuration(cpuMs),
    showBytes(memoryBytes),
    String(processes),
    showBytes(diskBytes),
    String(memoryKills ?? "–"),
    source,
  ]);
  const headings = ["ID", "CPU", "MEMORY", "PROCESSES", "DISK", "OUT-OF-MEMORY KILLS", "SOURCE"];
  return await printResult(context, args, { json: all, text: table([headings, ...rows]) });
}

async function showMachineStats(context: CliContext, args: ParsedArguments): Promise<number> {
  const stats = await context.station.machine.stats();
  const { cpu, memory, disk, sandboxes, runs, pool } = stats;
  const usedText = ({ bytes, availableBytes }: { bytes: number; availableBytes: number }) =>
    `${showBytes(bytes - availableBytes)} of ${showBytes(bytes)}`;
  return await printResult(context, args, {
    json: stats,
    text: table([
      ["processors", `${cpu.cores}, load ${cpu.load.map((each) => each.toFixed(2)).join(" ")}`],
      ["memory", usedText(memory)],
      ["disk", usedText(disk)],
      ["sandboxes", `${sandboxes.running} running, ${sandboxes.paused} paused, ${sandboxes.other} other`],
      ["runs", `${runs.open} open, ${runs.ended} ended`],
      ["pool", pool === null ? "none" : `${pool.waiting} of ${pool.size} ready`],
    ]),
  });
}

/** `caisson sandbox pause SANDBOX…` */
export async function pauseSandboxes(context: CliContext, args: ParsedArguments): Promise<number> {
  const ids = await idsOf(context, args, args.positionals);
  for (const id of ids) await context.station.sandboxes.pause(id, { toDisk: args.flag("to-disk") });
  return await printResult(context, args, { json: { paused: ids } });
}

/** `caisson sandbox resume SANDBOX…` */
export async function resumeSandboxes(context: CliContext, args: ParsedArguments): Promise<number> {
  const ids = await idsOf(context, args, args.positionals);
  for (const id of ids) await context.station.sandboxes.resume(id);
  return await printResult(context, args, { json: { resumed: ids } });
}

/** `caisson sandbox snapshot SANDBOX` */
export async function snapshotSandbox(context: CliContext, args: ParsedArguments): Promise<number> {
  const snapshot = await context.station.sandboxes.snapshot(args.positionals[0] ?? "", {
    ...defined({ name: args.option("name") }),
    memory: args.flag("memory"),
  });
  const { id, sandbox, name } = snapshot;
  return await printResult(context, args, { json: { id, sandbox, name }, text: line`${id}` });
}

/** `caisson sandbox fork SANDBOX` */
export async function forkSandbox(context: CliContext, args: ParsedArguments): Promise<number> {
  const fork = await context.station.sandboxes.fork(args.positionals[0] ?? "", { memory: args.flag("memory") });
  return await printResult(context, args, { json: fork, text: line`${fork.id}` });
}

/** `caisson sandbox rm SANDBOX…` */
export async function removeSandboxes(context: CliContext, args: ParsedArguments): Promise<number> {
  const words = await wordsToRemove(context, args);
  if (!(await agreesToEnd(context, args, words))) {
    await context.stdout.print(line`Nothing was removed.`);
    return 1;
  }
  const ids = await idsOf(context, args, words);
  // One failed removal does not prevent the others.
  const outcomes = await Promise.allSettled(ids.map((id) => context.station.sandboxes.remove(id)));
  const failed = outcomes.find((outcome) => outcome.status === "rejected");
  if (failed !== undefined) throw failed.reason;
  return await printResult(context, args, { json: { removed: ids } });
}

async function wordsToRemove({ station }: CliContext, args: ParsedArguments): Promise<readonly string[]> {
  if (args.flag("all")) {
    const { sandboxes, damaged } = await station.sandboxes.list();
    return [...sandboxes, ...damaged].map(({ id }) => id);
  }
  if (args.positionals.length > 0) return args.positionals;
  throw new CaissonError("invalid", "sandbox rm: ID is missing", { hint: "Name sandboxes, or use --all." });
}

function idsOf({ station }: CliContext, args: ParsedArguments, words: readonly string[]): Promise<readonly string[]> {
  if (!args.flag("json")) return Promise.resolve(words);
  const lookup = async (word: string) =>
    (await ignore(station.sandboxes.get(word), "the next call reports a missing or damaged sandbox"))?.id ?? word;
  return Promise.all(words.map(lookup));
}

/** `caisson snapshot ls` */
export async function listSnapshots(context: CliContext, args: ParsedArguments): Promise<number> {
  const { snapshots } = await context.station.sandboxes.snapshots();
  const rows = snapshots.map((each) => [each.id, each.runtime, each.name ?? "–", each.sandbox, showBytes(each.bytes), each.createdAt]);
  return await printResult(context, args, {
    json: snapshots,
    text:
      rows.length === 0
        ? line`No snapshots. Create one: caisson sandbox snapshot SANDBOX`
        : table([["ID", "RUNTIME", "NAME", "SANDBOX", "SIZE", "CREATED"], ...rows]),
  });
}

/** `caisson snapshot rm SNAPSHOT…` */
export async function removeSnapshots(context: CliContext, args: ParsedArguments): Promise<number> {
  return await removeNamed(context, args, { remove: (word) => context.station.sandboxes.removeSnapshot(word) });
}
