import { realpath } from "node:fs/promises";
import { dirname, normalize } from "node:path";
import { worseLevel } from "../../contract/health/health.ts";
import { isAtFork, type RunFacts } from "../../contract/run/run-facts.ts";
import type { QueuePlace } from "../../contract/run/run-queue.ts";
import type { ListRuns, RunList, RunView } from "../../contract/run/run-verbs.ts";
import { defined } from "../../lib/defined.ts";
import { ignore } from "../../lib/failures.ts";
import { createPauses } from "../../lib/pauses.ts";
import type { HeadCursor, HeadFilter } from "../../log/head-filter.ts";
import type { Log } from "../../log/log.ts";
import { labelTerm } from "../../log/projection.ts";
import type { SessionStore } from "../../workspace/sessions.ts";
import { parseCursor, showCursor } from "../pages.ts";
import { type HeadOfRun, toRunHead } from "../vocabulary/head-of-run.ts";
import { runStream } from "../vocabulary/station-names.ts";

const VIEWS_AT_ONCE = 50;

export interface ViewOptions {
  log: Log;
  sessions: SessionStore;
  /** Returns the current driver of a run, or null. */
  driverOf: (run: string) => Promise<string | null>;
  /** Returns a run's place in the queue, or null if it does not wait. */
  placeOf: (facts: RunFacts) => QueuePlace | null;
}

/** Lists runs from the stored facts in the log, without folding any run. Throws `invalid` for a malformed cursor. */
export async function listRuns(request: Omit<ListRuns, "limit"> & { limit: number }, options: ViewOptions): Promise<RunList> {
  const { state, finish, cursor, limit } = request;
  const after = cursor === undefined ? undefined : headCursor(cursor);
  const { id = "", name, agent, model, runtime, owner } = request;
  const one = (value: string | undefined) => (value === undefined ? undefined : [value]);
  const where = defined({
    finish,
    name: one(name),
    agent: one(agent),
    model: one(model),
    "sandbox.runtime": one(runtime),
    owner: one(owner),
    session: await sessionsOf(request, options),
    "parent.run": parentsOf(request),
  });
  const open = state === undefined ? undefined : state === "open";
  const filter = {
    prefix: runStream(id),
    where,
    terms: request.label?.map(labelTerm),
    updated: updatedIn(request),
    matches: lookedFor(request),
  };
  const { heads, total, isMinimum } = await options.log.heads({
    ...defined(filter),
    prefix: filter.prefix,
    limit,
    ...defined({ open, after }),
  });
  const sessions = onceEach(options.sessions);
  const runs: RunView[] = [];
  const pause = createPauses();
  for (let at = 0; at < heads.length; at += VIEWS_AT_ONCE) {
    const some = heads.slice(at, at + VIEWS_AT_ONCE);
    runs.push(...(await Promise.all(some.map((head) => viewOf(toRunHead(head), { ...options, sessions })))));
    await pause();
  }
  const last = heads.at(-1);
  return {
    runs,
    total,
    totalIsMinimum: isMinimum,
    next: last !== undefined && heads.length === limit ? showCursor([last.at, last.stream]) : null,
  };
}

/** Returns the range of update times, in the log's format. A run created after a time was also updated after it. */
function updatedIn({ createdAfter, updatedAfter, updatedBefore }: ListRuns): { from?: string; before?: string } | undefined {
  const asText = (time: string | undefined) => (time === undefined ? undefined : new Date(time).toISOString());
  const [from] = [createdAfter, updatedAfter].flatMap((time) => asText(time) ?? []).sort((a, b) => (a < b ? 1 : -1));
  const found = defined({ from, before: asText(updatedBefore) });
  return Object.keys(found).length === 0 ? undefined : found;
}

function lookedFor({ text, createdAfter, createdBefore }: ListRuns): HeadFilter["matches"] {
  if (text === undefined && createdAfter === undefined && createdBefore === undefined) return undefined;
  const wanted = text?.toLowerCase();
  return (head) => {
    const { title, name, createdAt } = head as unknown as RunFacts;
    const at = Date.parse(createdAt);
    return (
      (wanted === undefined || title.toLowerCase().includes(wanted) || (name?.includes(wanted) ?? false)) &&
      (createdAfter === undefined || at >= Date.parse(createdAfter)) &&
      (createdBefore === undefined || at < Date.parse(createdBefore))
    );
  };
}

/** Caches session lookups, because many runs share a session. */
function onceEach(sessions: Pick<SessionStore, "get">): Pick<SessionStore, "get"> {
  const found = new Map<string, ReturnType<SessionStore["get"]>>();
  return {
    get(id) {
      const known = found.get(id) ?? sessions.get(id);
      found.set(id, known);
      return known;
    },
  };
}

export async function viewOf(
  head: HeadOfRun,
  { driverOf, placeOf, sessions }: Pick<ViewOptions, "driverOf" | "placeOf"> & { sessions: Pick<SessionStore, "get"> },
): Promise<RunView> {
  const { facts, seq, at, damage } = head;
  const {
    run,
    name,
    owner,
    labels,
    session,
    parent,
    forked,
    agent,
    model,
    title,
    paused,
    finish,
    sandbox,
    step,
    usage,
    costUsd,
    workedMs,
    budgets,
    bounds,
  } = facts;
  const status = await statusOf(head, driverOf);
  return {
    run,
    name,
    owner,
    labels,
    session,
    ...(await folderOf(session, sessions)),
    parent,
    forked,
    agent,
    model,
    title,
    status,
    queue: status === "queued" ? placeOf(facts) : null,
    paused,
    finish,
    damage,
    sandbox,
    health: worseLevel(facts.health.driver.level, facts.health.sandbox.level),
    steps: step,
    usage,
    costUsd,
    workedMs,
    budgets,
    bounds,
    asked: facts.asked.map(({ question, kind, text }) => ({ question, kind, text })),
    seq,
    createdAt: facts.createdAt,
    updatedAt: at,
  };
}

async function folderOf(session: string, sessions: Pick<SessionStore, "get">): Promise<Pick<RunView, "folder" | "origin">> {
  const source = (await ignore(sessions.get(session), "a run is listed even without its session"))?.source;
  return {
    folder: source?.kind === "folder" ? source.path : null,
    origin: source?.kind === "upload" ? source.origin : null,
  };
}

async function statusOf({ facts, damage }: HeadOfRun, driverOf: ViewOptions["driverOf"]): Promise<RunView["status"]> {
  if (damage !== null) return "damaged";
  if (facts.finish !== null) return "ended";
  if ((await driverOf(facts.run)) !== null) return facts.paused === null ? "running" : "paused";
  if (facts.queued !== null) return "queued";
  if (isAtFork(facts)) return "paused";
  return facts.status === "created" ? "created" : "interrupted";
}

async function sessionsOf(
  request: Pick<ListRuns, "session" | "folder" | "machine">,
  { sessions }: ViewOptions,
): Promise<string[] | undefined> {
  const { session, folder, machine } = request;
  if (folder === undefined) return session === undefined ? undefined : [session];
  const there = await (machine === undefined ? sessionsOn(folder, sessions) : sessionsFrom({ folder, machine }, sessions));
  return session === undefined ? there : there.filter((id) => id === session);
}

/** Returns the sessions of the folder or of its nearest ancestor that has any, as git finds a repository. */
async function sessionsOn(folder: string, sessions: Pick<SessionStore, "list">): Promise<string[]> {
  const byPath = Map.groupBy(await sessions.list(), ({ source }) => (source.kind === "folder" ? source.path : null));
  const byFolder = new Map<string, string[]>();
  for (const [path, some] of byPath) {
    if (path === null) continue;
    const real = await realFolder(path);
    byFolder.set(real, [...(byFolder.get(real) ?? []), ...some.map(({ id }) => id)]);
  }
  return nearestAbove(await realFolder(folder), byFolder);
}

/** Does the same for folders uploaded from another machine. It reads nothing on this machine. */
async function sessionsFrom(
  { folder, machine }: { folder: string; machine: string },
  sessions: Pick<SessionStore, "list">,
): Promise<string[]> {
  const byFolder = new Map<string, string[]>();
  for (const { id, source } of await sessions.list()) {
    if (source.kind !== "upload" || source.origin.machine !== machine) continue;
    byFolder.set(source.origin.folder, [...(byFolder.get(source.origin.folder) ?? []), id]);
  }
  return nearestAbove(normalize(folder), byFolder);
}

function nearestAbove(folder: string, byFolder: ReadonlyMap<string, string[]>): string[] {
  for (let at = folder; ; at = dirname(at)) {
    const found = byFolder.get(at);
    if (found !== undefined) return found;
    if (at === dirname(at)) return [];
  }
}

const realFolder = async (path: string) => (await ignore(realpath(path), "a folder out of reach counts under its own path")) ?? path;

function parentsOf({ parent }: Pick<ListRuns, "parent">): (string | null)[] | undefined {
  return parent === undefined ? undefined : [parent];
}

function headCursor(text: string): HeadCursor {
  const [at, stream] = parseCursor(text, "runs");
  return { at, stream };
}
