import type { DiskUsage } from "../../contract/machine/machine-verbs.ts";
import { type StorageKind, storageKinds } from "../../contract/machine/storage-kinds.ts";
import { showBytes } from "../../lib/quantity.ts";
import type { ParsedArguments } from "../command.ts";
import type { CliContext } from "../context.ts";
import { line } from "../terminal/line.ts";
import { table } from "../terminal/table.ts";

/** Another version of the station may name other kinds. */
const factsOf = (kind: string) => (Object.hasOwn(storageKinds, kind) ? storageKinds[kind as StorageKind] : null);
const textOf = (kind: DiskUsage["kind"]) => (kind === "other" ? "everything else" : (factsOf(kind)?.text ?? kind));

/** `caisson df` */
export async function runDf(context: CliContext, args: ParsedArguments): Promise<number> {
  const usage = await context.station.machine.usage();
  if (args.flag("json")) {
    await context.stdout.printJson(usage);
    return 0;
  }
  const rows = usage.kinds.map(({ kind, count, bytes }) => [
    showBytes(bytes),
    factsOf(kind)?.isCounted === true ? String(count) : "–",
    kind,
    textOf(kind),
  ]);
  await context.stdout.print(table([["SIZE", "COUNT", "KIND", "WHAT"], ...rows]));
  await context.stdout.print(line`${showBytes(usage.bytes)}${usage.isMinimum ? " or more" : ""} in ${usage.stateDir}`);
  return 0;
}

/** `caisson snapshot du [SNAPSHOT]` */
export async function runSnapshotDu(context: CliContext, args: ParsedArguments): Promise<number> {
  const [of] = args.positionals;
  const { usages, bytes, isMinimum } = await context.station.machine.snapshotUsage(of === undefined ? {} : { of });
  if (args.flag("json")) {
    await context.stdout.printJson({ usages, bytes, isMinimum });
    return 0;
  }
  if (usages.length === 0) {
    await context.stdout.print(line`There are no snapshots, and no earlier states of sessions.`);
    return 0;
  }
  const rows = usages.map(({ kind, id, name, session, run, createdAt, ownBytes, sharedBytes }) => [
    kind,
    kind === "point" ? `${session ?? ""} ${id}` : id,
    name ?? (kind === "point" ? (run ?? "–") : "–"),
    showBytes(ownBytes),
    sharedBytes === 0 ? "–" : showBytes(sharedBytes),
    createdAt?.slice(0, 16).replace("T", " ") ?? "–",
  ]);
  await context.stdout.print(table([["KIND", "ID", "NAME OR RUN", "OWN", "SHARED", "SINCE"], ...rows]));
  await context.stdout.print(line`${showBytes(bytes)}${isMinimum ? " or more" : ""} in all`);
  return 0;
}
