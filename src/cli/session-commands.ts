import { CaissonError } from "../contract/error.ts";
import type { Session } from "../contract/session.ts";
import { showDuration } from "../lib/quantity.ts";
import { removeSession } from "../station/remove-session.ts";
import type { Given } from "./command.ts";
import type { CliContext } from "./context.ts";
import { parseDuration } from "./option-values.ts";
import { type LocalStation, openStation } from "./station.ts";
import { table } from "./table.ts";
import { findSession, sessionNamed } from "./workspace-view.ts";

const sourceText = (session: Session) =>
  session.source.kind === "folder" ? session.source.path : session.source.kind === "git" ? session.source.url : "empty";

export async function ls(context: CliContext, given: Given): Promise<number> {
  await using station = openStation(context);
  const sessions = await station.sessions.list();
  const rows = await Promise.all(sessions.map(async (session) => ({ session, lock: await station.sessions.lockOf(session.id) })));
  if (given.switched("json")) {
    await context.stdout.write(`${JSON.stringify(rows.map(({ session, lock }) => ({ ...session, lock })))}\n`);
    return 0;
  }
  const cells = rows.map(({ session, lock }) => [
    session.id,
    session.scope,
    lock === null ? "free" : lock.stale ? "stale lock" : `in use by ${lock.owner.run}`,
    `${showDuration(Date.now() - Date.parse(session.lastUsedAt))} ago`,
    sourceText(session),
  ]);
  await context.stdout.write(
    cells.length === 0 ? "No session yet.\n" : table([["SESSION", "SCOPE", "LOCK", "USED", "WORKSPACE"], ...cells]),
  );
  return 0;
}

export async function info(context: CliContext, given: Given): Promise<number> {
  await using station = openStation(context);
  const session = await findSession(station, given.words[0] ?? "");
  const lock = await station.sessions.lockOf(session.id);
  const history = await station.log.read(`session/${session.id}`, { limit: 1000 });
  const runs = (await station.runs.list({ limit: 1000 })).filter(({ state }) => state.session === session.id);
  const report = {
    ...session,
    lock,
    runs: runs.map(({ run, state }) => ({ run, task: state.task, status: state.ended?.reason ?? state.status })),
    history: history.map(({ type, at, data }) => ({ type, at, data })),
  };
  await context.stdout.write(given.switched("json") ? `${JSON.stringify(report)}\n` : `${JSON.stringify(report, null, 2)}\n`);
  return 0;
}

export async function rm(context: CliContext, given: Given): Promise<number> {
  await using station = openStation(context);
  for (const name of given.words) {
    const session = await findSession(station, name);
    await remove(context, station, session, given.switched("force"));
    await context.stdout.write(given.switched("json") ? `${JSON.stringify({ removed: session.id })}\n` : `${session.id} removed\n`);
  }
  return 0;
}

export async function unlock(context: CliContext, given: Given): Promise<number> {
  await using station = openStation(context);
  const session = await findSession(station, given.words[0] ?? "");
  await station.sessions.breakLock(session.id, { force: given.switched("force") });
  await context.stdout.write(given.switched("json") ? `${JSON.stringify({ unlocked: session.id })}\n` : `${session.id} unlocked\n`);
  return 0;
}

/** Removes sessions nobody used for a while. */
export async function cleanup(context: CliContext, given: Given): Promise<number> {
  await using station = openStation(context);
  const olderThan = parseDays(given.text("older-than") ?? "7d");
  const old = (await station.sessions.list()).filter((session) => Date.now() - Date.parse(session.lastUsedAt) >= olderThan);
  const removed: string[] = [];
  for (const session of old) {
    const lock = await station.sessions.lockOf(session.id);
    if (lock && !lock.stale) continue;
    if (!given.switched("dry-run")) await remove(context, station, session, false);
    removed.push(session.id);
  }
  if (given.switched("json")) await context.stdout.write(`${JSON.stringify({ removed, dryRun: given.switched("dry-run") })}\n`);
  else
    await context.stdout.write(
      removed.length === 0 ? "Nothing to remove.\n" : `${given.switched("dry-run") ? "Would remove" : "Removed"} ${removed.join(", ")}\n`,
    );
  return 0;
}

/** `caisson discard [RUN]`: forgets what a run changed. */
export async function discard(context: CliContext, given: Given): Promise<number> {
  await using station = openStation(context);
  const session = await sessionNamed(station, given.words[0]);
  await remove(context, station, session, given.switched("force"));
  await context.stdout.write(
    given.switched("json") ? `${JSON.stringify({ discarded: session.id })}\n` : `The changes of ${session.id} are gone.\n`,
  );
  return 0;
}

async function remove(context: CliContext, station: LocalStation, session: Session, force: boolean): Promise<void> {
  await removeSession(session, {
    sessions: station.sessions,
    force,
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
    throw new CaissonError("invalid", `--older-than ${JSON.stringify(text)} is not a time such as 7d or 12h.`, { cause: error });
  }
}
