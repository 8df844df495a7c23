import { CaissonError } from "../../contract/error/error.ts";
import type { Pruned } from "../../contract/machine/machine-verbs.ts";
import { type StorageKind, storageKindNames } from "../../contract/machine/storage-kinds.ts";
import { nearest } from "../../lib/nearest.ts";
import { showBytes } from "../../lib/quantity.ts";
import type { ParsedArguments } from "../command.ts";
import type { CliContext } from "../context.ts";
import { parseDays } from "../options/option-values.ts";
import { askYes, canAsk } from "../terminal/ask-yes.ts";
import { line } from "../terminal/line.ts";
import { table } from "../terminal/table.ts";

/** `caisson prune` */
export async function runPrune(context: CliContext, args: ParsedArguments): Promise<number> {
  const { machine } = context.station;
  const olderThanMs = parseDays("older-than", args.option("older-than") ?? "7d");
  const isDryRun = args.flag("dry-run");
  const kinds = args.positionals.map(parseKind);
  const request = { olderThanMs, ...(kinds.length > 0 && { kinds }) };
  const found = await machine.prune({ ...request, dryRun: true });
  const isAsked = !isDryRun && !args.flag("yes") && found.things.length > 0;
  if (isAsked && (args.flag("json") || !canAsk(context))) {
    throw new CaissonError("conflict", `${countOf(found)} would be removed, and there is no terminal to ask on`, {
      hint: "Use --dry-run to see what would be removed, or --yes to remove it.",
    });
  }
  if (!args.flag("json")) await show(context, found);
  if (isAsked && !(await askYes(context, line`Remove ${found.things.length === 1 ? "it" : "them"}?`))) {
    await context.stdout.print(line`Nothing was removed.`);
    return 1;
  }
  // Removes exactly what was shown; anything that became unused since then waits for the next time.
  const pruned = isDryRun ? found : await machine.prune({ ...request, only: found.things.map(({ id }) => id) });
  if (args.flag("json")) await context.stdout.printJson(pruned);
  else if (!isDryRun && pruned.things.length > 0) await context.stdout.print(line`Removed ${countOf(pruned)}, ${showBytes(pruned.bytes)}.`);
  return 0;
}

function parseKind(word: string): StorageKind {
  const kind = storageKindNames.find((name) => name === word);
  if (kind !== undefined) return kind;
  const suggestion = nearest(word, storageKindNames);
  throw new CaissonError("invalid", `${JSON.stringify(word)} is not a kind that \`prune\` knows`, {
    hint: suggestion === undefined ? `The kinds are ${storageKindNames.join(", ")}.` : `Did you mean ${suggestion}?`,
  });
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
