import { CaissonError } from "../../contract/error/error.ts";
import type { AppliedChanges, AppliedFile } from "../../contract/session/session-verbs.ts";
import { ignore } from "../../lib/failures.ts";
import { showDuration } from "../../lib/quantity.ts";
import type { ParsedArguments } from "../command.ts";
import type { CliContext } from "../context.ts";
import { type Line, line, quotedName } from "../terminal/line.ts";
import { printDiff } from "../terminal/print-diff.ts";
import { table } from "../terminal/table.ts";

/** `caisson diff --applied [RUN] [PATH…]`: shows what the last apply changed in a folder. */
export async function showApplied(
  context: CliContext,
  args: ParsedArguments,
  { name, paths }: { name: string; paths: readonly string[] },
): Promise<number> {
  for (const name of ["at", "from", "to"])
    if (args.option(name) !== undefined) throw new CaissonError("invalid", `--applied and --${name} are mutually exclusive`);
  const found = await context.station.sessions.applied(name);
  const { applies, diff } = found;
  const [last] = applies;
  if (last === undefined) {
    throw new CaissonError("not_found", `no changes of ${name} were applied`, { hint: "Run `caisson diff` to see its changes." });
  }
  const files = (diff?.files ?? []).filter(({ path, from }) => isNamed(path, paths) || (from !== null && isNamed(from, paths)));
  if (args.flag("json")) await context.stdout.printJson({ ...found, diff: diff === null ? null : { ...diff, files } });
  else if (args.flag("stat")) await context.stdout.print(table(files.map(statLine)));
  else await printPatches(context, args, files);
  await context.stderr.print(line`caisson: ${appliedWords(last)}`);
  if (diff?.isWhole !== true)
    await context.stderr.print(line`caisson: ${diff === null ? "its diff was not stored" : "parts of it were too large to store"}`);
  return 0;
}

/** If a diff is empty because its changes are already in the folder, says so on stderr. */
export async function tellApplied(context: CliContext, name: string): Promise<void> {
  const applied = await ignore(context.station.sessions.applied(name), "an older station lacks this call; then nothing is printed");
  const last = applied?.applies[0];
  if (last === undefined) return;
  const how = last.hasDiff ? "; `caisson diff --applied` shows them" : "";
  await context.stderr.print(line`caisson: nothing is left to apply: ${appliedWords(last)}${how}`);
}

function appliedWords({ count, folder, at }: AppliedChanges): Line {
  const ago = `${showDuration(Math.max(0, Date.now() - Date.parse(at)))} ago`;
  return line`${count} ${count === 1 ? "file was" : "files were"} applied to ${folder} ${ago}`;
}

async function printPatches(context: CliContext, args: ParsedArguments, files: readonly AppliedFile[]): Promise<void> {
  const stdout = args.flag("no-pager") ? context.stdout : await context.pager.open();
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
