import { resolve } from "node:path";
import { CaissonError } from "../../contract/error/error.ts";
import type { ChangedFile, LeftOut } from "../../contract/session/session-verbs.ts";
import { defined } from "../../lib/defined.ts";
import type { ParsedArguments } from "../command.ts";
import type { CliContext } from "../context.ts";
import { runAndPaths, runNamed } from "../runs/run-named.ts";
import { joinLines, line, quotedName } from "../terminal/line.ts";
import { visibleText } from "../terminal/plain-text.ts";
import { printDiff } from "../terminal/print-diff.ts";
import { type Cell, table } from "../terminal/table.ts";
import { showApplied, tellApplied } from "./applied-changes.ts";
import { parseStep } from "./step-of-run.ts";

type ShownFile = Pick<ChangedFile, "path" | "from" | "changedOutside" | "heldBack">;

/** `caisson diff [RUN] [PATH…]` */
export async function diff(context: CliContext, args: ParsedArguments): Promise<number> {
  const { sessions } = context.station;
  const { name, paths, isRunNamed } = await runAndPaths(context, args.positionals);
  if (args.flag("applied")) return await showApplied(context, args, { name, paths });
  const { isNow, ...steps } = stepsOf(args);
  const options = { paths, includeIgnored: args.flag("ignored"), signal: context.interruption.signal, ...steps };
  if (!args.flag("json") && !args.flag("stat")) {
    const files: ShownFile[] = [];
    const leftOut: LeftOut[] = [];
    let ignored = 0;
    const stdout = args.flag("no-pager") ? context.stdout : await context.pager.open();
    // Binary patches and huge files are unreadable on a screen; a pipe gets a complete patch that can be applied.
    for await (const piece of sessions.patch(name, { ...options, brief: context.stdout.isTerminal })) {
      if (piece.kind === "patch") await printDiff(stdout, piece.bytes);
      else if (piece.kind === "file") files.push(piece.file);
      else if (piece.kind === "ignored") ignored = piece.count;
      else leftOut.push(piece.leftOut);
    }
    await context.pager.close();
    if (!isRunNamed && files.length === 0) refuseUnchanged(paths, name);
    await tellFiles(context, files);
    await tellLeftOut(context, leftOut);
    await tellIgnored(context, ignored, "--ignored shows them");
    if (files.length === 0 && isNow) await tellApplied(context, name);
    return 0;
  }
  const found = await sessions.diff(name, options);
  if (!isRunNamed && found.files.length === 0) refuseUnchanged(paths, name);
  if (args.flag("json")) {
    await context.stdout.printJson(found);
    return 0;
  }
  await context.stdout.print(table(found.files.map(statLine)));
  await tellFiles(context, found.files);
  await tellLeftOut(context, found.leftOut);
  await tellIgnored(context, found.ignored, "--ignored shows them");
  if (found.files.length === 0 && isNow) await tellApplied(context, name);
  return 0;
}

/** Returns the steps between which to compare. */
function stepsOf(args: ParsedArguments): { at?: number; since?: number; isNow: boolean } {
  const at = args.option("to") ?? args.option("at");
  const since = args.option("from");
  return {
    ...(at !== undefined && { at: parseStep("--to", at) }),
    ...(since !== undefined && { since: parseStep("--from", since) }),
    isNow: at === undefined && since === undefined,
  };
}

/** A word that names no run or session was either meant as a path or mistyped. */
function refuseUnchanged(paths: readonly string[], run: string): void {
  if (paths.length === 0) return;
  throw new CaissonError("not_found", `${run} changed nothing at ${paths.map(visibleText).join(", ")}`, {
    hint: "Run `caisson diff --stat` to list its changes; `caisson ps` and `caisson session ls` list runs and sessions.",
  });
}

async function tellFiles(context: CliContext, files: readonly ShownFile[]): Promise<void> {
  const held = files.filter(({ heldBack }) => heldBack !== null).map(({ path }) => quotedName(path));
  if (held.length > 0)
    await context.stderr.print(
      line`caisson: tools outside the sandbox act on these files, so they are applied only if you name them: ${joinLines(held, ", ")}`,
    );
  const outside = files.filter(({ changedOutside }) => changedOutside).map(({ from, path }) => quotedName(from ?? path));
  if (outside.length > 0)
    await context.stderr.print(
      line`caisson: you changed these files after the agent started, and the diff reverts your changes: ${joinLines(outside, ", ")}`,
    );
}

function statLine(file: ChangedFile): Cell[] {
  const path = file.from === null ? quotedName(file.path) : line`${quotedName(file.from)} → ${quotedName(file.path)}`;
  return [
    file.kind,
    path,
    file.binary ? "binary" : `+${file.linesAdded} −${file.linesRemoved}`,
    [file.changedOutside ? "changed outside" : "", file.heldBack === null ? "" : "held back"].filter(Boolean).join(", "),
  ];
}

async function tellLeftOut(context: CliContext, leftOut: readonly LeftOut[]): Promise<void> {
  for (const { path, reason } of leftOut) await context.stderr.print(line`caisson: left out ${quotedName(path)}: ${reason}`);
}

async function tellIgnored(context: CliContext, count: number, what: string): Promise<void> {
  if (count > 0) await context.stderr.print(line`caisson: + ${count} ignored ${count === 1 ? "file" : "files"}; ${what}`);
}

/** `caisson apply [RUN] [PATH…]` */
export async function apply(context: CliContext, args: ParsedArguments): Promise<number> {
  const { name, paths } = await runAndPaths(context, args.positionals);
  const to = args.option("to");
  const { session: _, ...result } = await context.station.sessions.apply(name, {
    includeConfiguration: args.flag("include-config"),
    includeIgnored: args.flag("ignored"),
    force: args.flag("force"),
    leaveOut: [...args.options("leave-out")],
    ...defined({ folder: to === undefined ? undefined : resolve(context.cwd, to), paths: paths.length === 0 ? undefined : paths }),
  });
  if (args.flag("json")) {
    await context.stdout.printJson(result);
    return 0;
  }
  const { applied, skipped, told: warnings, leftOut, ignored, folder } = result;
  await tellLeftOut(context, [...skipped, ...leftOut]);
  for (const { path, reason } of warnings) await context.stderr.print(line`caisson: check ${quotedName(path)}: ${reason}`);
  await tellIgnored(context, ignored, "--ignored includes them");
  await context.stdout.print(line`${applied.length} ${applied.length === 1 ? "file" : "files"} applied to ${folder}`);
  return 0;
}

/** `caisson branch [RUN]` */
export async function branch(context: CliContext, args: ParsedArguments): Promise<number> {
  const to = args.option("to");
  const { session: _, ...result } = await context.station.sessions.branch(await runNamed(context, args.positionals[0]), {
    includeConfiguration: args.flag("include-config"),
    ...defined({
      repository: to === undefined ? undefined : resolve(context.cwd, to),
      name: args.option("name"),
      message: args.option("message"),
    }),
  });
  if (args.flag("json")) {
    await context.stdout.printJson(result);
    return 0;
  }
  await context.stdout.print(line`${result.commit.slice(0, 12)} on branch ${result.branch}; your work tree is unchanged`);
  await tellLeftOut(context, [...result.skipped, ...result.leftOut]);
  await tellIgnored(context, result.ignored, "not on the branch");
  return 0;
}
