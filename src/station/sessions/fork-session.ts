import { CaissonError } from "../../contract/error.ts";
import { ChosenName } from "../../contract/ids.ts";
import { parseRequest } from "../../contract/parse-request.ts";
import type { Session } from "../../contract/session.ts";
import { ForkSession } from "../../contract/session-verbs.ts";
import { newId } from "../../lib/new-id.ts";
import type { Runtime } from "../../sandbox/runtime.ts";
import type { NewSession, SessionStore } from "../../workspace/sessions.ts";
import type { Crashpoint } from "../crashpoint.ts";
import type { ClaimName } from "../names/claim-name.ts";
import { sessionIdOf } from "../names/session-id.ts";
import { createSession, type RunCreation } from "../runs/new-run.ts";
import { snapshotName } from "../runs/run-sandbox.ts";
import type { ChangesOptions } from "./session-changes.ts";
import { filesAfter, type KeptFiles, type StepFilesOptions } from "./step-files.ts";
import { viewSpec } from "./view-spec.ts";

/** A fork copies what a session changed: of more it is refused, as a mistake. */
const FORK_BYTES_MAX = 16 * 1024 * 1024 * 1024;

export interface ForkOptions extends ChangesOptions, StepFilesOptions {
  sessions: SessionStore;
}

/** Whose files a new session begins with. */
export interface ForkSource {
  session: Session;
  /** After a step of a run; null: as they are now. */
  at: { run: string; step: number } | null;
}

/** See `SessionVerbs.fork`. */
export async function forkSession(
  source: ForkSource,
  request: ForkSession,
  options: ForkOptions & RunCreation & { crashpoint: Crashpoint; claimName: ClaimName; owner: string },
): Promise<Session> {
  const { name } = parseRequest(ForkSession, request, "a fork");
  const { owner } = options;
  await using _claim = name === undefined ? null : await options.claimName(parseRequest(ChosenName, name, "a session's name"), { owner });
  const id = name === undefined ? newId("ses") : sessionIdOf(name, owner);
  const plan = await planFork(source, options);
  const about = { id, scope: "session", cleanup: "never", ...(name !== undefined && id !== name && { name }) } as const;
  return await createSession(options, { session: { ...plan.session, owner, ...about }, note: newId("fork") }, async (made) => {
    await plan.fill(made);
    return await options.sessions.get(made.id);
  });
}

export interface PlannedFork {
  session: Pick<NewSession, "source" | "uploads" | "forked" | "commit" | "preparedAt" | "runtime">;
  fill: (made: Session) => Promise<void>;
}

/** What a session is to be made of that begins with the files of another, and how it gets them. */
export async function planFork({ session, at }: ForkSource, options: ForkOptions): Promise<PlannedFork> {
  const { source, uploads, commit, preparedAt, createdAt } = session;
  const kept = at === null ? "now" : await filesAfter(session, at, options);
  // No sandbox was ever on it, or none that got so far as to have files: it begins like the other did.
  const isUntouched = session.runtime === null || (source.kind === "git" && commit === null);
  const since = session.forked?.since ?? createdAt;
  const forked = { from: session.id, at: new Date().toISOString(), since };
  const files = isUntouched ? {} : { commit, preparedAt, runtime: session.runtime };
  return {
    session: { source, uploads, forked, ...files },
    async fill(made) {
      if (!isUntouched && kept !== null) await copyFiles({ from: session, to: made, kept }, options);
      // Only now: what was copied is older.
      await options.sessions.update(made.id, { forked: { ...forked, at: new Date().toISOString() } });
      await options.sessions.noteApplied(made.id, await options.sessions.applied(session.id));
      await options.sessions.record(made.id, { type: "session.forked", data: { from: session.id, at } });
    },
  };
}

async function copyFiles(
  { from, to, kept }: { from: Session; to: Session; kept: Exclude<KeptFiles, null> | "now" },
  options: ForkOptions,
): Promise<void> {
  const runtime = await options.runtime(from.runtime ?? undefined);
  if (kept !== "now") return await copyKept({ from, to, kept }, { ...options, runtime });
  // Nobody writes meanwhile.
  await using _ = await options.sessions.edit(from.id);
  const now = await options.sessions.get(from.id);
  if (runtime.forkLayer !== undefined) await forkLayer({ from, to }, { ...options, runtime });
  else await copySnapshot(now.snapshot?.id ?? null, to, { ...options, runtime });
  // With force, it may have been removed under our hands.
  if (!(await options.sessions.has(from.id))) throw new CaissonError("gone", `the session ${from.id} was removed meanwhile`);
}

async function copyKept(
  { from, to, kept }: { from: Session; to: Session; kept: Exclude<KeptFiles, null> },
  options: Omit<ForkOptions, "runtime"> & { runtime: Runtime },
): Promise<void> {
  if (kept.kind === "layer") await forkLayer({ from, to, copy: kept.copy }, options);
  else await copySnapshot(kept.id, to, options);
}

async function forkLayer(
  { from, to, copy }: { from: Session; to: Session; copy?: string },
  { sessions, runtime }: { sessions: SessionStore; runtime: Runtime },
): Promise<void> {
  const layers = [sessions.paths(from).layer, sessions.paths(to).layer] as const;
  await runtime.forkLayer?.(...layers, { bytesMax: FORK_BYTES_MAX, ...(copy !== undefined && { copy }) });
}

/** Where a runtime keeps no layers: a snapshot of the session's own, which goes with it. */
async function copySnapshot(id: string | null, to: Session, options: { sessions: SessionStore; runtime: Runtime }): Promise<void> {
  if (id === null) return;
  const { sessions, runtime } = options;
  const seen = { ...to, snapshot: { id, runtime: runtime.name } };
  await using sandbox = await runtime.create(await viewSpec(seen, options));
  const snapshot = await sandbox.snapshot({ name: snapshotName(to.id) });
  await sessions.update(to.id, { snapshot: { id: snapshot, runtime: runtime.name } });
}
