import { CaissonError } from "../../contract/error.ts";
import type { Pruned } from "../../contract/machine-verbs.ts";
import { showBytes } from "../../lib/quantity.ts";
import type { ParsedArguments } from "../command.ts";
import type { CliContext } from "../context.ts";
import { parseDays } from "../options/option-values.ts";
import { askYes, canAsk } from "../terminal/ask-yes.ts";
import { line } from "../terminal/line.ts";
import { table } from "../terminal/table.ts";

/** `caisson prune` */
export async function run(context: CliContext, given: ParsedArguments): Promise<number> {
  const { machine } = context.station;
  const olderThanMs = parseDays("older-than", given.option("older-than") ?? "7d");
  const isDryRun = given.flag("dry-run");
  const found = await machine.prune({ olderThanMs, dryRun: true });
  const isAsked = !isDryRun && !given.flag("yes") && found.things.length > 0;
  if (isAsked && (given.flag("json") || !canAsk(context))) {
    throw new CaissonError("conflict", `${countOf(found)} would be removed, and nobody is there to be asked`, {
      hint: "--dry-run shows what would go; --yes removes it.",
    });
  }
  if (!given.flag("json")) await show(context, found);
  if (isAsked && !(await askYes(context, line`Remove ${found.things.length === 1 ? "it" : "them"}?`))) {
    await context.stdout.print(line`Nothing was removed.`);
    return 1;
  }
  // Exactly what was shown: whatever became unused meanwhile waits for the next time.
  const pruned = isDryRun ? found : await machine.prune({ olderThanMs, only: found.things.map(({ id }) => id) });
  if (given.flag("json")) await context.stdout.printJson(pruned);
  else if (!isDryRun && pruned.things.length > 0) await context.stdout.print(line`Removed ${countOf(pruned)}, ${showBytes(pruned.bytes)}.`);
  return 0;
}

async function show(context: CliContext, { things, bytes }: Pruned): Promise<void> {
  if (things.length === 0) {
    await context.stdout.print(line`Nothing to remove.`);
    return;
  }
  const rows = things.map(({ kind, id, name, bytes: size, why }) => [kind, id, name ?? "–", size === 0 ? "–" : showBytes(size), why]);
  await context.stdout.print(table([["KIND", "ID", "NAME", "SIZE", "WHY"], ...rows]));
  await context.stdout.print(line`${showBytes(bytes)} in all`);
}

const countOf = ({ things }: Pruned) => `${things.length} ${things.length === 1 ? "thing" : "things"}`;
