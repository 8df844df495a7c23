import { CaissonError } from "../contract/error.ts";
import type { Session } from "../contract/session.ts";
import { showDuration } from "../lib/quantity.ts";
import { goesWithRun, removeSession } from "../station/sessions/remove-session.ts";
import { cleanAddress, withoutSecret } from "../workspace/git/address.ts";
import type { ParsedArguments } from "./command.ts";
import type { CliContext } from "./context.ts";
import { line } from "./line.ts";
import { parseDuration } from "./option-values.ts";
import { type LocalStation, openStation } from "./station.ts";
import { table } from "./table.ts";
import { findSession, sessionNamed } from "./workspace-view.ts";

const sourceText = (session: Session) =>
  session.source.kind === "folder" ? session.source.path : session.source.kind === "git" ? cleanAddress(session.source.url) : "empty";
/** As it may be shown. */
const shown = (session: Session): Session => ({ ...session, source: withoutSecret(session.source) });

export async function ls(context: CliContext, given: ParsedArguments): Promise<number> {
  await using station = openStation(context);
  const sessions = await station.sessions.list();
  const rows = await Promise.all(sessions.map(async (session) => ({ session, lock: await station.sessions.lockOf(session.id) })));
  if (given.flag("json")) {
    await context.stdout.printJson(rows.map(({ session, lock }) => ({ ...shown(session), lock })));
    return 0;
  }
  const cells = rows.map(({ session, lock }) => [
    session.id,
    session.scope,
    lock === null ? "free" : lock.stale ? "stale lock" : `in use by ${lock.owner.run}`,
    `${showDuration(Date.now() - Date.parse(session.lastUsedAt))} ago`,
    sourceText(session),
  ]);
  await context.stdout.print(
    cells.length === 0 ? line`No session yet.` : table([["SESSION", "SCOPE", "LOCK", "USED", "WORKSPACE"], ...cells]),
  );
  return 0;
}

/** Runs that are looked at for those of one session. */
const RUNS_MAX = 10_000;

export async function info(context: CliContext, given: ParsedArguments): Promise<number> {
  await using station = openStation(context);
  const session = await findSession(station, given.positionals[0] ?? "");
  const lock = await station.sessions.lockOf(session.id);
  const history = await station.sessions.history(session.id);
  const all = await station.runs.list({ openMax: RUNS_MAX, endedMax: RUNS_MAX });
  const runs = all.runs.filter(({ facts }) => facts.session === session.id);
  const report = {
    ...shown(session),
    lock,
    runs: runs.map(({ run, facts }) => ({ run, task: facts.title, status: facts.finish ?? facts.status })),
    history: history.map(({ type, at, data }) => ({ type, at, data })),
  };
  await (given.flag("json") ? context.stdout.printJson(report) : context.stdout.printJson(report, { indent: 2 }));
  return 0;
}

export async function rm(context: CliContext, given: ParsedArguments): Promise<number> {
  await using station = openStation(context);
  for (const name of given.positionals) {
    const session = await findOrDamaged(station, name, given.flag("force"));
    await remove(context, station, session, { force: given.flag("force"), why: "removed" });
    await (given.flag("json") ? context.stdout.printJson({ removed: session.id }) : context.stdout.print(line`${session.id} removed`));
  }
  return 0;
}

export async function unlock(context: CliContext, given: ParsedArguments): Promise<number> {
  await using station = openStation(context);
  const session = await findSession(station, given.positionals[0] ?? "");
  await station.sessions.breakLock(session.id, { force: given.flag("force") });
  await (given.flag("json") ? context.stdout.printJson({ unlocked: session.id }) : context.stdout.print(line`${session.id} unlocked`));
  return 0;
}

/** With `force`, a session whose record is damaged can be removed, too: everything of it that can be found by its name. */
async function findOrDamaged(station: LocalStation, name: string, force: boolean): Promise<Session> {
  try {
    return await findSession(station, name);
  } catch (error) {
    if (!force || !(error instanceof CaissonError) || error.code !== "internal") throw error;
    await station.sessions.repair(name);
    return await station.sessions.get(name);
  }
}

/** Removes sessions nobody used for a while, and those that should have gone with their run. */
export async function cleanup(context: CliContext, given: ParsedArguments): Promise<number> {
  await using station = openStation(context);
  const olderThan = parseDays(given.option("older-than") ?? "7d");
  const removed: string[] = [];
  for (const session of await station.sessions.list()) {
    const lock = await station.sessions.lockOf(session.id);
    if (lock && !lock.stale) continue;
    const old = Date.now() - Date.parse(session.lastUsedAt) >= olderThan;
    if (!old && !(await isLeftOver(station, session))) continue;
    removed.push(session.id);
    if (given.flag("dry-run")) continue;
    await remove(context, station, session, { force: false, why: old ? "aged" : "cleanup" });
  }
  if (given.flag("json")) await context.stdout.printJson({ removed, dryRun: given.flag("dry-run") });
  else
    await context.stdout.print(
      removed.length === 0 ? line`Nothing to remove.` : line`${given.flag("dry-run") ? "Would remove" : "Removed"} ${removed.join(", ")}`,
    );
  return 0;
}

/** Its run's process died before it could remove it. */
async function isLeftOver(station: LocalStation, session: Session): Promise<boolean> {
  if (session.scope !== "run") return false;
  const facts = await station.runs.facts(session.id).catch(() => null);
  return facts !== null && goesWithRun(session, facts);
}

/** `caisson discard [RUN]`: forgets what a run changed. */
export async function discard(context: CliContext, given: ParsedArguments): Promise<number> {
  await using station = openStation(context);
  const session = await sessionNamed(station, given.positionals[0]);
  await remove(context, station, session, { force: given.flag("force"), why: "discarded" });
  await (given.flag("json")
    ? context.stdout.printJson({ discarded: session.id })
    : context.stdout.print(line`The changes of ${session.id} are gone.`));
  return 0;
}

async function remove(
  context: CliContext,
  station: LocalStation,
  session: Session,
  how: { force: boolean; why: "discarded" | "removed" | "aged" | "cleanup" },
): Promise<void> {
  await removeSession(session, {
    sessions: station.sessions,
    ...how,
    runtimes: await Promise.all(context.runtimes.names.filter((name) => name !== "host").map((name) => context.runtimes.get(name))),
  });
}

function parseDays(text: string): number {
  const days = /^(\d+)d$/.exec(text)?.[1];
  if (days !== undefined) return Number(days) * 24 * 3_600_000;
  if (text === "0") return 0;
  try {
    return parseDuration("older-than", text);
  } catch (error) {
    throw new CaissonError("invalid", `--older-than ${JSON.stringify(text)} is not a time such as 7d or 12h`, { cause: error });
  }
}
