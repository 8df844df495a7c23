import { setTimeout as delay } from "node:timers/promises";
import { CaissonError } from "../../contract/error/error.ts";
import type { SandboxId } from "../../contract/ids.ts";
import type { Session } from "../../contract/session/session.ts";
import { defined } from "../../lib/defined.ts";
import { ignore } from "../../lib/failures.ts";
import type { Runtime } from "../../sandbox/runtime.ts";
import type { Sandbox } from "../../sandbox/sandbox.ts";
import { lookAtFolder } from "../../workspace/apply-recovery.ts";
import type { Changes } from "../../workspace/change.ts";
import { findChanges } from "../../workspace/changes.ts";
import { findCommitChanges } from "../../workspace/git/commit-changes.ts";
import type { GitOptions } from "../../workspace/git/host-git.ts";
import type { IgnoredFiles } from "../../workspace/ignore-rules.ts";
import type { SessionStore } from "../../workspace/sessions.ts";
import { withPointView } from "./point-view.ts";
import type { PointFiles } from "./step-files.ts";
import { configOfView, type MakeViewConfig } from "./view-config.ts";

/** How long a view waits for another view that holds the layer. */
const VIEW_WAIT_MS_MAX = 20_000;
const VIEW_POLL_MS = 50;
/** How long removing an unresponsive sandbox may take at the end of its run. */
const DEATH_WAIT_MS_MAX = 5_000;

export interface ChangesOptions {
  stateDir: string;
  sessions: SessionStore;
  runtime: (name: string | undefined) => Promise<Runtime>;
  git: Pick<GitOptions, "path" | "home">;
}

/**
 * Returns the changes in a session's workspace, read through its running sandbox or through a temporary one. `version`
 * selects stored files.
 */
export async function changesOf(
  session: Session,
  { version = "now", ...options }: ChangesOptions & { ignoring?: IgnoredFiles; version?: PointFiles | "now" },
): Promise<Changes> {
  // The session never had a sandbox, or only ones that failed before they had files.
  if (session.runtime === null || version === null || (session.source.kind === "git" && session.commit === null))
    return { changes: [], leftOut: [], ignored: 0 };
  const runtime = await options.runtime(session.runtime);
  return await lookAtSession(session, options, async () => {
    if (version !== "now")
      return await withPointView(session, version, { ...options, runtime }, (sandbox, seen) =>
        changesIn(sandbox, seen.session, { ...options, runtime, point: seen.point }),
      );
    return await withSandbox(session, { ...options, runtime }, (sandbox, now) => changesIn(sandbox, now, { ...options, runtime }));
  });
}

/** Reads a session and the user's folder below it, if there is one; see `lookAtFolder`. */
export async function lookAtSession<Result>(
  { source }: Session,
  { stateDir }: { stateDir: string },
  look: () => Promise<Result>,
): Promise<Result> {
  return source.kind === "folder" ? await lookAtFolder(source.path, { stateDir }, look) : await look();
}

/** Returns the changes in a session's workspace, read through this sandbox. The caller holds the session. */
export async function changesIn(
  sandbox: Sandbox,
  session: Session,
  options: Omit<ChangesOptions, "runtime"> & { runtime: Runtime; ignoring?: IgnoredFiles; point?: string | null },
): Promise<Changes> {
  const { sessions, stateDir, git, runtime, point } = options;
  // An empty workspace has no ignore rules from the user, and the rules of a repository around the state folder do not
  // apply.
  const ignoring = session.source.kind === "empty" ? { includeIgnored: true } : (options.ignoring ?? {});
  const paths = sessions.paths(session);
  const layers = session.snapshot === null && point !== null ? await runtime.layerFolders?.(paths.layer, defined({ point })) : undefined;
  if (session.source.kind === "git" && session.commit !== null) {
    const { source, commit, owner } = session;
    const folders = await sessions.folders(session.id);
    // Inodes and times tell only about the layer in which the repository was checked out.
    const layer = layers?.length === 1 && point === undefined ? (layers[0] ?? null) : null;
    const preparedAtMs = Date.parse(session.preparedAt ?? session.createdAt);
    return await findCommitChanges({ sandbox, layer, folders, preparedAtMs, stateDir, git, source, owner, commit, ignoring });
  }
  const applied = await sessions.readApplied(session.id);
  const since = { sinceMs: Date.parse(session.forked?.since ?? session.createdAt), applied, ...copiedAt(session) };
  const hiding = session.source.kind === "folder" ? session.source.hiding : undefined;
  return await findChanges({ sandbox, lower: paths.lower, layers: layers ?? null, ...since, stateDir, ignoring, ...defined({ hiding }) });
}

/** Returns when files were last copied into the session: from another one, or from a point. */
function copiedAt({ forked, restoredAt }: Session): { copiedAtMs?: number } {
  const times = [forked?.at, restoredAt].flatMap((at) => (at ? [Date.parse(at)] : []));
  return times.length === 0 ? {} : { copiedAtMs: Math.max(...times) };
}

/**
 * Runs `work` with a sandbox on the session. A run's sandbox may end at any moment, together with the run: then we
 * start over with the next sandbox or a temporary one. `work` receives the session in its current state.
 */
export async function withSandbox<Result>(
  { id }: Session,
  options: Pick<ChangesOptions, "sessions"> & { runtime: Runtime; makeConfig?: MakeViewConfig },
  work: (sandbox: Sandbox, session: Session) => Promise<Result>,
): Promise<Result> {
  const { runtime, sessions, makeConfig = configOfView } = options;
  const deadline = Date.now() + VIEW_WAIT_MS_MAX;
  let firstDeathAt: number | null = null;
  for (;;) {
    const running = (await runtime.list()).find((info) => info.labels.session === id && info.state === "running");
    try {
      if (running) return await workIn(running.id, runtime, async (sandbox) => work(sandbox, await sessions.get(id)));
      // A writable layer can have only one sandbox at a time, so a view holds the session as a run does.
      await using _ = await sessions.look(id);
      const session = await sessions.get(id);
      await using sandbox = await runtime.create(await makeConfig(session, options));
      return await work(sandbox, session);
    } catch (error) {
      const isDeath = running !== undefined && isGone(error);
      if (isDeath) firstDeathAt ??= Date.now();
      const until = isDeath ? (firstDeathAt ?? 0) + DEATH_WAIT_MS_MAX : deadline;
      if (!(isDeath || isHeld(error)) || Date.now() >= until) throw error;
      await delay(VIEW_POLL_MS);
    }
  }
}

async function workIn<Result>(id: SandboxId, runtime: Runtime, work: (sandbox: Sandbox) => Promise<Result>): Promise<Result> {
  const sandbox = await runtime.open(id, { serveNetwork: false });
  try {
    return await work(sandbox);
  } finally {
    await ignore(sandbox.release(), "it may have ended; only the result matters");
  }
}

/** Returns whether a run or another view holds the session. */
function isHeld(error: unknown): boolean {
  return error instanceof CaissonError && error.code === "conflict" && error.details?.owner !== undefined;
}

/** Returns whether the error means that the sandbox is being removed or no longer exists. */
function isGone(error: unknown): boolean {
  return error instanceof CaissonError && ["lost", "not_found", "protocol", "unavailable", "cancelled"].includes(error.code);
}
