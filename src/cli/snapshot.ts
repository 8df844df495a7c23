import { CaissonError } from "../contract/error.ts";
import { SnapshotId } from "../contract/ids.ts";
import { showBytes } from "../lib/quantity.ts";
import type { Runtime, SnapshotInfo } from "../sandbox/runtime.ts";
import type { CommandSpec } from "./command.ts";
import type { CliContext } from "./context.ts";
import { table } from "./table.ts";

type Loaded = Awaited<ReturnType<CommandSpec["load"]>>;

export const list: Loaded = {
  async run(context, given) {
    const snapshots = (await everySnapshot(context)).map(({ snapshot, runtime }) => ({ ...snapshot, runtime: runtime.name }));
    if (given.flag("json")) {
      await context.stdout.printJson(snapshots);
    } else if (snapshots.length > 0) {
      const rows = snapshots.map((each) => [each.id, each.runtime, each.name ?? "–", each.sandbox, showBytes(each.bytes), each.createdAt]);
      await context.stdout.print(table([["ID", "RUNTIME", "NAME", "SANDBOX", "SIZE", "MADE"], ...rows]));
    }
    return 0;
  },
};

export const remove: Loaded = {
  async run(context, given) {
    const all = await everySnapshot(context);
    for (const word of given.positionals) {
      const id = SnapshotId.safeParse(word);
      if (!id.success)
        throw new CaissonError("invalid", `${JSON.stringify(word)} is not a snapshot's id`, { hint: "An id looks like sn_k3v7q2m5x4ab." });
      const owner = all.find(({ snapshot }) => snapshot.id === id.data);
      if (owner === undefined)
        throw new CaissonError("not_found", `there is no snapshot ${word}`, { hint: "`caisson snapshot ls` lists them." });
      await owner.runtime.removeSnapshot(id.data);
    }
    return 0;
  },
};

/** A runtime that cannot be used at all (no engine runs) has no snapshots to show. */
async function everySnapshot(context: CliContext): Promise<{ snapshot: SnapshotInfo; runtime: Runtime }[]> {
  const found: { snapshot: SnapshotInfo; runtime: Runtime }[] = [];
  for (const name of context.runtimes.names) {
    const runtime = await context.runtimes.get(name);
    try {
      for (const snapshot of await runtime.snapshots()) found.push({ snapshot, runtime });
    } catch (error) {
      if (!(error instanceof CaissonError) || (error.code !== "unavailable" && error.code !== "unsupported")) throw error;
    }
  }
  return found;
}
