import { CaissonError } from "../../contract/error/error.ts";
import { parseRequest } from "../../contract/error/parse-request.ts";
import { ChosenName } from "../../contract/ids.ts";
import type { Session } from "../../contract/session/session.ts";
import { ForkSession } from "../../contract/session/session-verbs.ts";
import type { Crashpoint } from "../../lib/crashpoint.ts";
import { defined } from "../../lib/defined.ts";
import { newId } from "../../lib/new-id.ts";
import type { Runtime } from "../../sandbox/runtime.ts";
import type { NewSession, SessionStore } from "../../workspace/sessions.ts";
import type { ClaimName } from "../names/claim-name.ts";
import { sessionIdOf } from "../names/session-id.ts";
import { snapshotName } from "../vocabulary/station-names.ts";
import { createSession, type SessionCreation } from "./create-session.ts";
import type { ChangesOptions } from "./session-changes.ts";
import { filesAfter, type PointFiles, type StepFilesOptions } from "./step-files.ts";
import { pointName } from "./stored-points.ts";
import { configOfView } from "./view-config.ts";

/** The most that a fork may store. If a session changed more than this, forking it is probably a mistake. */
const FORK_BYTES_MAX = 16 * 1024 * 1024 * 1024;

export interface ForkOptions extends ChangesOptions, StepFilesOptions {
  sessions: SessionStore;
}

/** The session whose files a fork starts with. */
export interface ForkSource {
  session: Session;
  /** The step of a run whose files to use; null for the current files. */
  at: { run: string; step: number } | null;
}

/** See `SessionVerbs.fork`. */
export async function forkSession(
  source: ForkSource,
  request: ForkSession,
  options: ForkOptions & SessionCreation & { crashpoint: Crashpoint; claimName: ClaimName; owner: string },
): Promise<Session> {
  const { name } = parseRequest(ForkSession, request, "a fork");
  const { owner } = options;
  await using _claim = name === undefined ? null : await options.claimName(parseRequest(ChosenName, name, "a session's name"), { owner });
  const id = name === undefined ? newId("ses") : sessionIdOf(name, owner);
  const plan = await planFork(source, options);
  const about = { id, scope: "session", cleanup: "never", ...(name !== undefined && id !== name && { name }) } as const;
  return await createSession(options, { session: { ...plan.session, owner, ...about }, note: newId("fork") }, async (fork) => {
    await plan.fill(fork);
    return await options.sessions.get(fork.id);
  });
}

export interface PlannedFork {
  session: Pick<NewSession, "source" | "uploads" | "forked" | "commit" | "preparedAt" | "runtime">;
  fill: (fork: Session) => Promise<void>;
}

/** Plans a session that starts with the files of another: its properties, and how to fill it. */
export async function planFork({ session, at }: ForkSource, options: ForkOptions): Promise<PlannedFork> {
  const { source, uploads, commit, preparedAt, createdAt } = session;
  const version = at === null ? "now" : await filesAfter(session, at, options);
  // The session never had a sandbox, or only ones that failed before they had files, so the fork starts as the original
  // did.
  const isUntouched = session.runtime === null || (source.kind === "git" && commit === null);
  const since = session.forked?.since ?? createdAt;
  const forked = { from: session.id, at: new Date().toISOString(), since };
  const files = isUntouched ? {} : { commit, preparedAt, runtime: session.runtime };
  return {
    session: { source, uploads, forked, ...files },
    async fill(fork) {
      if (!isUntouched && version !== null) await copyFiles({ from: session, to: fork, version }, options);
      // Set after the copy: the copied files are older than this.
      await options.sessions.update(fork.id, { forked: { ...forked, at: new Date().toISOString() } });
      await options.sessions.noteApplied(fork.id, await options.sessions.readApplied(session.id));
      await options.sessions.record(fork.id, { type: "session.forked", data: { from: session.id, at } });
    },
  };
}

async function copyFiles(
  { from, to, version }: { from: Session; to: Session; version: Exclude<PointFiles, null> | "now" },
  options: ForkOptions,
): Promise<void> {
  const runtime = await options.runtime(from.runtime ?? undefined);
  if (version !== "now") return await copyPoint({ from, to, version }, { ...options, runtime });
  // Ensures that no process writes to the session during the copy.
  await using _ = await options.sessions.edit(from.id);
  const now = await options.sessions.get(from.id);
  if (runtime.points !== undefined) await forkLayer({ from, to }, { ...options, runtime });
  else await copySnapshot(now.snapshot?.id ?? null, to, { ...options, runtime });
  // A forced removal may have taken the session away during the copy.
  if (!(await options.sessions.has(from.id))) throw new CaissonError("gone", `the session ${from.id} was removed during the fork`);
}

async function copyPoint(
  { from, to, version }: { from: Session; to: Session; version: Exclude<PointFiles, null> },
  options: Omit<ForkOptions, "runtime"> & { runtime: Runtime },
): Promise<void> {
  if (version.kind === "snapshot") return await copySnapshot(version.id, to, options);
  const point = pointName(version);
  // Nothing had been written.
  if (point !== null) await forkLayer({ from, to, point }, options);
}

async function forkLayer(
  { from, to, point }: { from: Session; to: Session; point?: string },
  { sessions, runtime }: { sessions: SessionStore; runtime: Runtime },
): Promise<void> {
  const layers = [sessions.paths(from).layer, sessions.paths(to).layer] as const;
  await runtime.points?.fork(...layers, { bytesMax: FORK_BYTES_MAX, ...defined({ point }) });
}

/** For runtimes without layers: gives the fork its own snapshot, which is removed with it. */
async function copySnapshot(id: string | null, to: Session, options: { sessions: SessionStore; runtime: Runtime }): Promise<void> {
  if (id === null) return;
  const { sessions, runtime } = options;
  if (runtime.snapshotPoints !== undefined) {
    await runtime.snapshotPoints.keep(sessions.paths(to).layer, id);
    await sessions.update(to.id, { snapshot: { id, runtime: runtime.name } });
    return;
  }
  const seen = { ...to, snapshot: { id, runtime: runtime.name } };
  await using sandbox = await runtime.create(await configOfView(seen, options));
  const snapshot = await sandbox.snapshot({ name: snapshotName(to.id) });
  await sessions.update(to.id, { snapshot: { id: snapshot, runtime: runtime.name } });
}
