import { resolve } from "node:path";
import { setImmediate as breathe } from "node:timers/promises";
import { CaissonError } from "../contract/error.ts";
import type { Session } from "../contract/session.ts";
import { applyChanges } from "../workspace/apply.ts";
import { type Change, isWithin, type LeftOut } from "../workspace/change.ts";
import { commitToBranch } from "../workspace/git/branch.ts";
import { whyHeldBack } from "../workspace/protected-files.ts";
import { blobOf, type DiffStat, diffStat, renderSections } from "../workspace/render-diff.ts";
import type { ParsedArguments } from "./command.ts";
import type { CliContext } from "./context.ts";
import { joined, line, quotedName } from "./line.ts";
import { printDiff } from "./print-diff.ts";
import { openStation } from "./station.ts";
import { type Cell, table } from "./table.ts";
import { sessionNamed, viewChanges } from "./workspace-view.ts";

/** `caisson diff [RUN] [PATH…]` */
export async function diff(context: CliContext, given: ParsedArguments): Promise<number> {
  await using station = openStation(context);
  const [name, ...paths] = given.positionals;
  const session = await sessionNamed(station, name);
  const { changes, leftOut } = await viewChanges(context, station, session);
  const named = paths.map((path) => path.replace(/\/$/, ""));
  const wanted =
    named.length === 0 ? changes : changes.filter(({ path, from }) => isWithin(path, named) || (from !== null && isWithin(from, named)));
  const stats = () => diffStat(wanted, context.interruption);
  if (given.flag("json")) {
    const files = (await stats()).map((stat) => ({ ...stat, heldBack: whyHeldBack(stat.path) }));
    await context.stdout.printJson({ session: session.id, files, leftOut });
    return 0;
  }
  if (given.flag("stat")) await context.stdout.print(table((await stats()).map(statLine)));
  else await printSections(context, wanted);
  const held = wanted.filter(({ path }) => whyHeldBack(path) !== null).map(({ path }) => quotedName(path));
  if (held.length > 0)
    await context.stderr.print(
      line`caisson: tools outside the sandbox act on these, so they are applied only when named: ${joined(held, ", ")}`,
    );
  const outside = wanted.filter((change) => change.changedOutside);
  if (outside.length > 0)
    await context.stderr.print(
      line`caisson: you changed these since the agent began from them, and the diff undoes that: ${joined(outside.map(oldPath), ", ")}`,
    );
  await tellLeftOut(context, leftOut);
  return 0;
}

/** Section by section: what is written need not be held, and whoever asked may stop in between. */
async function printSections(context: CliContext, changes: readonly Change[]): Promise<void> {
  for (const section of renderSections(changes)) {
    await printDiff(context.stdout, section);
    await breathe();
    if (context.interruption.signal.aborted) throw new CaissonError("cancelled", "interrupted");
  }
}

const oldPath = (change: Change) => quotedName(change.from ?? change.path);

function statLine(stat: DiffStat): Cell[] {
  const path = stat.from === null ? quotedName(stat.path) : line`${quotedName(stat.from)} → ${quotedName(stat.path)}`;
  return [
    stat.kind,
    path,
    stat.binary ? "binary" : `+${stat.linesAdded} −${stat.linesRemoved}`,
    [stat.changedOutside ? "changed outside" : "", whyHeldBack(stat.path) === null ? "" : "held back"].filter(Boolean).join(", "),
  ];
}

async function tellLeftOut(context: CliContext, leftOut: readonly LeftOut[]): Promise<void> {
  for (const { path, reason } of leftOut) await context.stderr.print(line`caisson: left out ${quotedName(path)}: ${reason}`);
}

/** `caisson apply [RUN] [PATH…]` */
export async function apply(context: CliContext, given: ParsedArguments): Promise<number> {
  await using station = openStation(context);
  const [name, ...paths] = given.positionals;
  const session = await sessionNamed(station, name);
  const to = given.option("to");
  const own = session.source.kind === "folder" ? session.source.path : null;
  const folder = to === undefined ? own : resolve(context.cwd, to);
  if (folder === null) {
    throw new CaissonError("invalid", `the session ${session.id} has no folder of yours`, {
      hint: "Say where: caisson apply RUN --to DIR, or make a branch: caisson branch RUN --to REPOSITORY.",
    });
  }
  const { changes, leftOut } = await viewChanges(context, station, session);
  const result = await applyChanges(changes, {
    folder,
    stateDir: context.stateDir,
    ...(paths.length === 0 ? {} : { paths }),
    includeConfiguration: given.flag("include-config"),
    // In another folder it is the content that must be right.
    force: given.flag("force") || folder !== own,
  });
  if (folder === own) await station.sessions.noteApplied(session.id, blobsOf(changes, result.applied));
  const { applied } = result;
  if (applied.length > 0)
    await station.sessions.record(session.id, {
      type: "session.applied",
      data: { folder, paths: applied.slice(0, 1000), count: applied.length },
    });
  if (given.flag("json")) {
    await context.stdout.printJson({ folder, ...result, leftOut });
    return 0;
  }
  await tellLeftOut(context, [...result.skipped, ...leftOut]);
  for (const { path, reason } of result.told) await context.stderr.print(line`caisson: look at ${quotedName(path)}: ${reason}`);
  await context.stdout.print(line`${applied.length} ${applied.length === 1 ? "file" : "files"} applied to ${folder}`);
  return 0;
}

function blobsOf(changes: readonly Change[], applied: readonly string[]): Map<string, string> {
  const chosen = new Set(applied);
  return new Map(
    changes.flatMap(({ path, after }) => (after !== null && chosen.has(path) ? [[path, blobOf(after.content)] as const] : [])),
  );
}

/** `caisson branch [RUN]` */
export async function branch(context: CliContext, given: ParsedArguments): Promise<number> {
  await using station = openStation(context);
  const session = await sessionNamed(station, given.positionals[0]);
  const folder = repositoryFor(context, given, session);
  const { changes, leftOut } = await viewChanges(context, station, session);
  const result = await commitToBranch(changes, {
    folder,
    name: given.option("name") ?? `caisson/${session.id}`,
    message: given.option("message") ?? `Changes of ${session.id}\n`,
    author: context.config.author,
    git: { path: context.path },
    includeConfiguration: given.flag("include-config"),
    ...(session.source.kind === "git" && session.commit !== null ? { base: session.commit } : {}),
  });
  const { repository, commit } = result;
  await station.sessions.record(session.id, { type: "session.branched", data: { repository, branch: result.branch, commit } });
  if (given.flag("json")) await context.stdout.printJson({ ...result, leftOut });
  else {
    await context.stdout.print(line`${commit.slice(0, 12)} on branch ${result.branch}; your work tree is as it was`);
    await tellLeftOut(context, [...result.skipped, ...leftOut]);
  }
  return 0;
}

function repositoryFor(context: CliContext, given: ParsedArguments, session: Session): string {
  const to = given.option("to");
  if (to !== undefined) return resolve(context.cwd, to);
  if (session.source.kind === "folder") return session.source.path;
  throw new CaissonError("invalid", `the session ${session.id} has no repository of yours to make a branch in`, {
    hint: "Name a clone of it: caisson branch RUN --to REPOSITORY.",
  });
}
