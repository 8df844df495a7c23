import { CaissonError } from "../../contract/error.ts";
import type { AppliedChanges, AppliedFile, SessionApplies } from "../../contract/session-verbs.ts";
import { showDuration } from "../../lib/quantity.ts";
import type { ParsedArguments } from "../command.ts";
import type { CliContext } from "../context.ts";
import { type Line, line, quotedName } from "../terminal/line.ts";
import { printDiff } from "../terminal/print-diff.ts";
import { table } from "../terminal/table.ts";

/** `caisson diff --applied [RUN] [PATH…]`: what the last apply brought to a folder. */
export async function showApplied(
  context: CliContext,
  given: ParsedArguments,
  { name, paths }: { name: string; paths: readonly string[] },
): Promise<number> {
  if (given.option("at") !== undefined) throw new CaissonError("invalid", "--applied and --at cannot be used together");
  const found = await context.station.sessions.applied(name);
  const { applies, diff } = found;
  const [last] = applies;
  if (last === undefined) {
    throw new CaissonError("not_found", `nothing of ${name} was applied`, { hint: "`caisson diff` shows what it changed." });
  }
  const files = (diff?.files ?? []).filter(({ path, from }) => isNamed(path, paths) || (from !== null && isNamed(from, paths)));
  if (given.flag("json")) await context.stdout.printJson({ ...found, diff: diff === null ? null : { ...diff, files } });
  else if (given.flag("stat")) await context.stdout.print(table(files.map(statLine)));
  else await printPatches(context, given, files);
  await context.stderr.print(line`caisson: ${appliedWords(last)}`);
  if (diff?.isWhole !== true)
    await context.stderr.print(line`caisson: ${diff === null ? "its diff was not kept" : "some of it was too large to keep"}`);
  return 0;
}

/** Says on stderr, where a diff is empty, that its changes are in the folder already. */
export async function tellApplied(context: CliContext, name: string): Promise<void> {
  // A station of an older version does not know; then nothing is said.
  const { applies }: Pick<SessionApplies, "applies"> = await context.station.sessions.applied(name).catch(() => ({ applies: [] }));
  const [last] = applies;
  if (last === undefined) return;
  const how = last.hasDiff ? "; `caisson diff --applied` shows them" : "";
  await context.stderr.print(line`caisson: nothing is left to apply: ${appliedWords(last)}${how}`);
}

function appliedWords({ count, folder, at }: AppliedChanges): Line {
  const ago = `${showDuration(Math.max(0, Date.now() - Date.parse(at)))} ago`;
  return line`${count} ${count === 1 ? "file was" : "files were"} applied to ${folder} ${ago}`;
}

async function printPatches(context: CliContext, given: ParsedArguments, files: readonly AppliedFile[]): Promise<void> {
  const stdout = given.flag("no-pager") ? context.stdout : await context.pager.open();
  for (const { patch } of files) if (patch !== null) await printDiff(stdout, Buffer.from(patch.text, patch.encoding));
  await context.pager.close();
}

function isNamed(path: string, paths: readonly string[]): boolean {
  const named = paths.map((each) => each.replace(/\/$/, ""));
  return named.length === 0 || named.some((each) => each === "." || path === each || path.startsWith(`${each}/`));
}

const statLine = ({ kind, path, from, linesAdded, linesRemoved }: AppliedFile) => [
  kind,
  from === null ? quotedName(path) : line`${quotedName(from)} → ${quotedName(path)}`,
  `+${linesAdded} −${linesRemoved}`,
];
