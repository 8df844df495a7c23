import { showBytes } from "../../lib/quantity.ts";
import type { CommandSpec } from "../command.ts";
import { line } from "../terminal/line.ts";
import { table } from "../terminal/table.ts";

type Loaded = Awaited<ReturnType<CommandSpec["load"]>>;

export const list: Loaded = {
  async run({ station, stdout }, given) {
    const { snapshots } = await station.sandboxes.snapshots();
    if (given.flag("json")) {
      await stdout.printJson(snapshots);
    } else if (snapshots.length === 0) {
      await stdout.print(line`No snapshot. Make one: caisson sandbox snapshot SANDBOX`);
    } else {
      const rows = snapshots.map((each) => [each.id, each.runtime, each.name ?? "–", each.sandbox, showBytes(each.bytes), each.createdAt]);
      await stdout.print(table([["ID", "RUNTIME", "NAME", "SANDBOX", "SIZE", "MADE"], ...rows]));
    }
    return 0;
  },
};

export const remove: Loaded = {
  async run({ station }, given) {
    for (const id of given.positionals) await station.sandboxes.removeSnapshot(id);
    return 0;
  },
};
