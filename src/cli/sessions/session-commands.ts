import type { DamagedSession } from "../../contract/session-verbs.ts";
import { defined } from "../../lib/defined.ts";
import { showDuration } from "../../lib/quantity.ts";
import type { ParsedArguments } from "../command.ts";
import type { CliContext } from "../context.ts";
import { ownedSince } from "../options/list-asked.ts";
import { parseDays } from "../options/option-values.ts";
import { runNamed } from "../runs/run-named.ts";
import { line } from "../terminal/line.ts";
import { table } from "../terminal/table.ts";
import { lockText, sessionLines, sourceText } from "./session-view.ts";
import { atStep } from "./step-of-run.ts";
import { agreesToLose } from "./unapplied-work.ts";

/** Runs of one session that are shown. */
const RUNS_MAX = 10_000;

export async function ls(context: CliContext, given: ParsedArguments): Promise<number> {
  const { sessions, damaged } = await context.station.sessions.list(ownedSince(given));
  await tellDamaged(context, damaged);
  if (given.flag("json")) {
    await context.stdout.printJson(sessions);
    return 0;
  }
  const cells = sessions.map((session) => [
    session.id,
    session.scope,
    lockText(session.lock),
    `${showDuration(Date.now() - Date.parse(session.lastUsedAt))} ago`,
    sourceText(session.source),
  ]);
  await context.stdout.print(
    cells.length === 0 ? line`No session yet.` : table([["SESSION", "SCOPE", "LOCK", "USED", "WORKSPACE"], ...cells]),
  );
  return 0;
}

/** Names the sessions whose record cannot be used. */
export async function tellDamaged({ stderr }: Pick<CliContext, "stderr">, damaged: readonly DamagedSession[]): Promise<void> {
  for (const { id, reason } of damaged) {
    await stderr.print(line`caisson: session ${id} cannot be listed: ${reason}`);
    await stderr.print(line`hint: \`caisson session rm --force ${id}\` removes it.`);
  }
}

export async function info(context: CliContext, given: ParsedArguments): Promise<number> {
  const { sessions, runs } = context.station;
  const { history, ...session } = await sessions.get(given.positionals[0] ?? "");
  const inside = await runs.list({ session: session.id, limit: RUNS_MAX });
  const shown = inside.runs.map(({ run, title, finish, status }) => ({ run, task: title, status: finish ?? status }));
  if (given.flag("json")) {
    await context.stdout.printJson({ ...session, runs: shown, history: history.map(({ type, at, data }) => ({ type, at, data })) });
    return 0;
  }
  const unapplied = await sessions.unapplied(session.id).catch(() => null);
  await context.stdout.print(sessionLines({ ...session, history }, { runs: shown, unapplied }));
  return 0;
}

/** `caisson session fork RUN[@STEP]` */
export async function fork(context: CliContext, given: ParsedArguments): Promise<number> {
  const { name: word, at } = atStep(given.positionals[0] ?? "");
  const session = await context.station.sessions.fork(word, defined({ name: given.option("name"), at }));
  await (given.flag("json") ? context.stdout.printJson(session) : context.stdout.print(line`${session.name ?? session.id}`));
  return 0;
}

export async function rm(context: CliContext, given: ParsedArguments): Promise<number> {
  if (!(await agreesToLose(context, given, given.positionals))) return await nothingRemoved(context);
  for (const name of given.positionals) {
    const removed = await context.station.sessions.discard(name, { force: given.flag("force"), why: "removed" });
    await (given.flag("json") ? context.stdout.printJson({ removed }) : context.stdout.print(line`${removed} removed`));
  }
  return 0;
}

export async function unlock(context: CliContext, given: ParsedArguments): Promise<number> {
  const unlocked = await context.station.sessions.unlock(given.positionals[0] ?? "", { force: given.flag("force") });
  await (given.flag("json") ? context.stdout.printJson({ unlocked }) : context.stdout.print(line`${unlocked} unlocked`));
  return 0;
}

/** Removes sessions nobody used for a while, and those that should have gone with their run. */
export async function cleanup(context: CliContext, given: ParsedArguments): Promise<number> {
  const olderThanMs = parseDays("older-than", given.option("older-than") ?? "7d");
  const { sessions } = context.station;
  const dryRun = given.flag("dry-run");
  const { removed: only } = await sessions.cleanup({ olderThanMs, dryRun: true });
  if (!dryRun && !(await agreesToLose(context, given, only))) return await nothingRemoved(context);
  const cleaned = await sessions.cleanup({ olderThanMs, dryRun, only });
  const { removed } = cleaned;
  if (given.flag("json")) await context.stdout.printJson(cleaned);
  else
    await context.stdout.print(
      removed.length === 0 ? line`Nothing to remove.` : line`${dryRun ? "Would remove" : "Removed"} ${removed.join(", ")}`,
    );
  return 0;
}

/** `caisson discard [RUN]`: forgets what a run changed. */
export async function discard(context: CliContext, given: ParsedArguments): Promise<number> {
  const name = await runNamed(context, given.positionals[0]);
  if (!(await agreesToLose(context, given, [name]))) return await nothingRemoved(context);
  const discarded = await context.station.sessions.discard(name, { force: given.flag("force") });
  await (given.flag("json") ? context.stdout.printJson({ discarded }) : context.stdout.print(line`The changes of ${discarded} are gone.`));
  return 0;
}

async function nothingRemoved(context: CliContext): Promise<number> {
  await context.stdout.print(line`Nothing was removed.`);
  return 1;
}
