import { CaissonError } from "../../contract/error/error.ts";
import { foundOrNull } from "../../contract/error/found-or-null.ts";
import { parseRequest } from "../../contract/error/parse-request.ts";
import { ChosenName } from "../../contract/ids.ts";
import type { Session } from "../../contract/session/session.ts";
import { CleanUpSessions, DiscardSession, type ForkSession, type SessionView } from "../../contract/session/session-verbs.ts";
import type { Crashpoint } from "../../lib/crashpoint.ts";
import type { SandboxRecord, Store } from "../../sandbox/store.ts";
import type { SessionVerbs } from "../../verbs/sessions.ts";
import { withoutSecret } from "../../workspace/git/address.ts";
import type { SessionStore } from "../../workspace/sessions.ts";
import type { ClaimName } from "../names/claim-name.ts";
import { findSandbox } from "../names/find-sandbox.ts";
import { appliedWork } from "./applied-work.ts";
import { applyWork } from "./apply-work.ts";
import { branchWork } from "./branch-work.ts";
import { type ChangedWork, workOfSession } from "./changed-work.ts";
import type { SessionCreation } from "./create-session.ts";
import { diffWork, patchWork } from "./diff-work.ts";
import { type ForkSource, forkSession } from "./fork-session.ts";
import { changesArchive, noteWork } from "./give-changes.ts";
import { listSessions } from "./list-sessions.ts";
import { type RefreshOptions, refreshSession } from "./refresh-session.ts";
import { removeSession } from "./remove-session.ts";
import { workOfSandbox } from "./sandbox-work.ts";
import { isOver } from "./session-cleanup.ts";
import { listFiles, readFile, type SeenFiles } from "./session-files.ts";
import { filesAfter, type PointFiles, pointsOf } from "./step-files.ts";
import { unappliedOf } from "./unapplied-changes.ts";
import { type UndoOptions, undoTurn } from "./undo-turn.ts";

export interface SessionVerbsOptions extends UndoOptions, SessionCreation {
  sessions: SessionStore;
  identity: SessionCreation["identity"];
  stateDir: string;
  crashpoint: Crashpoint;
  claimName: ClaimName;
  store: Store;
  /** Looks up a run, see `RunVerbs`. Throws `not_found`, `invalid`. */
  findRun: (word: string) => Promise<string>;
  /** Ends every open run of a session by asking its driver. */
  endRuns: (session: string, options: { by: string }) => Promise<void>;
  /** How repositories are fetched; absent: they are not. */
  fetching?: RefreshOptions["fetching"];
  /** The author of commits that `branch` creates. */
  author: { name: string; email: string };
}

export function createSessionVerbs(options: SessionVerbsOptions): SessionVerbs {
  const { sessions } = options;
  const find = async (name: string) => await sessions.get(await sessionNamed(name, options));
  const findWork = async (name: string): Promise<ChangedWork> => {
    const sandbox = await sandboxNamed(name, options);
    if (sandbox !== null && sandbox.spec.labels.session === undefined) return workOfSandbox(sandbox, options);
    const word = sandbox?.spec.labels.session ?? name;
    const session = await find(word);
    return workOfSession(session, { ...options, filesAfter: (step) => filesAt(word, session, step, options) });
  };
  const filesSeenAt = async (name: string, at: number | undefined): Promise<SeenFiles> => {
    const session = await find(name);
    return { session, version: at === undefined ? "now" : await filesAt(name, session, at, options) };
  };
  const view = async (session: Session): Promise<SessionView> => ({
    ...session,
    source: withoutSecret(session.source),
    lock: await sessions.lockOf(session.id),
  });
  const remove = async (session: Session, how: Pick<Parameters<typeof removeSession>[1], "force" | "why">) => {
    // If a run is at work in it, this throws before we end anything, unless forced.
    await sessions.breakLock(session.id, how);
    await options.endRuns(session.id, { by: "the removal of its session" });
    await removeSession(session, { sessions, ...how, runtimes: await options.runtimes() });
  };

  return {
    async get(name) {
      const session = await find(name);
      return { ...(await view(session)), history: await sessions.history(session.id) };
    },
    async list(request = {}) {
      const { sessions: page, ...rest } = await listSessions(request, sessions);
      return { sessions: await Promise.all(page.map(view)), ...rest };
    },
    diff: async (name, request) => await diffWork(await findWork(name), request),
    patch: (name, request) => patchWork(() => findWork(name), request),
    changes: (name, request) => changesArchive(() => findWork(name), request),
    note: async (name, request) => await noteWork(await findWork(name), request),
    unapplied: async (name) => await unappliedOf(await find(name), options),
    apply: async (name, request = {}) => await applyWork(await findWork(name), request, options),
    async applied(name, request = {}) {
      const sandbox = await sandboxNamed(name, options);
      if (sandbox !== null && sandbox.spec.labels.session === undefined)
        return await appliedWork({ id: sandbox.id, dir: options.store.dir(sandbox.id), history: [] }, request);
      const session = await find(sandbox?.spec.labels.session ?? name);
      return await appliedWork({ id: session.id, dir: sessions.paths(session).dir, history: await sessions.history(session.id) }, request);
    },
    undo: async (run, request = {}) => await undoTurn(await options.findRun(run), request, options),
    points: async (name) => await pointsOf(await find(name), options),
    files: async (name, request = {}) => await listFiles(await filesSeenAt(name, request.at), request, options),
    readFile: (name, request) => readFile(() => filesSeenAt(name, request.at), request, options),
    async fork(name, request = {}, { owner } = {}) {
      const source = await forkSource(name, request, options);
      return await view(await forkSession(source, request, { ...options, owner: owner ?? source.session.owner }));
    },
    async *refresh(name, request = {}) {
      const { fetching } = options;
      if (fetching === undefined) throw new CaissonError("unsupported", "this station fetches no repositories");
      yield* refreshSession(await find(name), request, { ...options, fetching });
    },
    branch: async (name, request = {}) => await branchWork(await findWork(name), request, options),
    async discard(name, request = {}) {
      const { force, why } = parseRequest(DiscardSession, request, "to discard a session");
      const session = await find(name).catch((error: unknown) => repairSession(name, error, { ...options, force }));
      await remove(session, { force, why });
      return session.id;
    },
    async unlock(name, { force = false } = {}) {
      const { id } = await find(name);
      await sessions.breakLock(id, { force });
      return id;
    },
    async cleanup(request) {
      const { olderThanMs, dryRun, only } = parseRequest(CleanUpSessions, request, "to clean up sessions");
      const removed: string[] = [];
      for (const session of await sessions.list()) {
        const lock = await sessions.lockOf(session.id);
        if ((lock && !lock.stale) || only?.includes(session.id) === false) continue;
        const old = Date.now() - Date.parse(session.lastUsedAt) >= olderThanMs;
        if (!old && !(await isOver(session, options))) continue;
        removed.push(session.id);
        if (!dryRun) await remove(session, { force: false, why: old ? "aged" : "cleanup" });
      }
      return { removed, dryRun };
    },
  };
}

/** Resolves a word and a step to the files of a fork. */
export async function forkSource(
  name: string,
  { at }: Pick<ForkSession, "at">,
  options: Pick<SessionVerbsOptions, "sessions" | "findRun" | "facts">,
): Promise<ForkSource> {
  const session = await options.sessions.get(await sessionNamed(name, options));
  if (at === undefined) return { session, at: null };
  return { session, at: { run: await runOf(name, session, options), step: at } };
}

async function filesAt(
  name: string,
  session: Session,
  step: number,
  options: Pick<SessionVerbsOptions, "sessions" | "findRun" | "turns">,
): Promise<PointFiles> {
  return await filesAfter(session, { run: await runOf(name, session, options), step }, options);
}

/** Returns the named run, or the last run of the named session. */
async function runOf(
  name: string,
  { id }: Session,
  { sessions, findRun }: Pick<SessionVerbsOptions, "sessions" | "findRun">,
): Promise<string> {
  // A named session has its name as its id. Only the id of an unnamed session is also the id of a run.
  const run = name !== id || name.startsWith("run_") ? await foundOrNull(findRun(name)) : null;
  if (run !== null) return run;
  const last = (await sessions.history(id)).findLast(({ type }) => type === "session.run_started");
  if (last?.type === "session.run_started") return last.data.run;
  throw new CaissonError("not_found", `the session ${id} has had no run`);
}

/** Looks up a sandbox; null if the name belongs to something else. */
async function sandboxNamed(name: string, { store, sessions }: SessionVerbsOptions): Promise<SandboxRecord | null> {
  const isId = name.startsWith("sb_");
  if (!isId && (!ChosenName.safeParse(name).success || (await sessions.has(name)))) return null;
  const id = await findSandbox(name, store).catch((error: unknown) => {
    if (!isId && error instanceof CaissonError && error.code === "not_found") return null;
    throw error;
  });
  return id === null ? null : await store.read(id);
}

/** Resolves a session's own name, or the id, prefix or name of a run in it, to a session id. */
async function sessionNamed(
  name: string,
  { sessions, findRun, facts }: Pick<SessionVerbsOptions, "sessions" | "findRun" | "facts">,
): Promise<string> {
  if (!name.startsWith("run_")) {
    // The lookup rejects unknown sessions and invalid names.
    if (!ChosenName.safeParse(name).success || (await sessions.has(name))) return name;
    const run = await foundOrNull(findRun(name));
    return run === null ? name : (await facts(run)).session;
  }
  return (await facts(await findRun(name))).session;
}

/** With `force`, repairs a session with a damaged record, so that everything found by its name can be removed. */
async function repairSession(
  name: string,
  error: unknown,
  options: { sessions: SessionVerbsOptions["sessions"]; force: boolean },
): Promise<Session> {
  if (!options.force || !(error instanceof CaissonError) || error.code !== "internal") throw error;
  await options.sessions.repair(name);
  return await options.sessions.get(name);
}
