import type { RunState } from "../../agent/run-state.ts";
import { CaissonError } from "../../contract/error/error.ts";
import type { RunFacts } from "../../contract/run/run-facts.ts";
import type { Session } from "../../contract/session/session.ts";
import type { SessionRemoved } from "../../contract/session/session-event.ts";
import { ignore } from "../../lib/failures.ts";
import type { Runtime } from "../../sandbox/runtime.ts";
import { removeFolder, type SessionStore } from "../../workspace/sessions.ts";
import { snapshotName } from "../vocabulary/station-names.ts";
import { removeViews } from "./point-view.ts";

type Why = (typeof SessionRemoved)["shape"]["data"]["shape"]["why"]["_output"];

/**
 * Ends what still runs in a session, and removes the session with all its files. Its history stays. Throws `conflict`
 * while a run works in it, unless forced.
 */
export async function removeSession(
  session: Session,
  options: { sessions: SessionStore; runtimes: readonly Runtime[]; force: boolean; why?: Why },
): Promise<void> {
  const { sessions } = options;
  // Its last run may have removed it already, if the agent's file requires that.
  if (!(await sessions.has(session.id))) return;
  await sessions.breakLock(session.id, { force: options.force });
  await removeKeptFiles(session, options);
  await removeFolder(sessions.paths(session).dir);
  await sessions.record(session.id, { type: "session.removed", data: { why: options.why ?? "removed" } });
}

/** Ends the sandboxes of a session, and removes its files from all runtimes. */
export async function removeKeptFiles(
  session: Session,
  { sessions, runtimes }: { sessions: Pick<SessionStore, "paths">; runtimes: readonly Runtime[] },
): Promise<void> {
  const { layer, dir } = sessions.paths(session);
  for (const runtime of runtimes) {
    for (const info of await runtime.list().catch(ifNotHere)) {
      if (info.labels.session !== session.id) continue;
      const sandbox = await ignore(runtime.open(info.id), "the sweep below removes it");
      if (sandbox) await sandbox.destroy();
      else await runtime.sweep();
    }
    for (const { id, name } of await runtime.snapshots().catch(ifNotHere))
      if (name === snapshotName(session.id) || id === session.snapshot?.id) await runtime.removeSnapshot(id).catch(ifInUse);
    if (session.runtime !== runtime.name && session.runtime !== null) continue;
    await runtime.removeLayer?.(layer).catch(ifNotHere);
    await removeViews(dir, runtime).catch(ifNotHere);
  }
}

/** A runtime that is not available on this machine has none of our sandboxes. */
function ifNotHere(error: unknown): never[] {
  if (error instanceof CaissonError && (error.code === "unavailable" || error.code === "unsupported")) return [];
  throw error;
}

/** Ignores the error for a snapshot that no longer exists, or that a sandbox created from it by name still needs. */
function ifInUse(error: unknown): void {
  if (!(error instanceof CaissonError) || (error.code !== "conflict" && error.code !== "not_found")) throw error;
}

/**
 * Returns whether a session is removed with its run: only if it was created for the run and the agent's file requires
 * it.
 */
export function goesWithRun(session: Session, facts: Pick<RunFacts, "status" | "finish">): boolean {
  if (session.scope !== "run" || facts.status !== "ended") return false;
  return session.cleanup === "always" || (session.cleanup === "on_success" && facts.finish === "done");
}

/** Records the end of a run in its session, and removes the session if it goes with the run. Idempotent. */
export async function leaveSession(state: RunState, options: { sessions: SessionStore; runtimes: readonly Runtime[] }): Promise<void> {
  const { sessions } = options;
  if (state.ended === null) return;
  const { reason } = state.ended;
  await sessions.record(state.session, { type: "session.run_ended", data: { run: state.run, reason } }, { once: true });
  const session = await sessions.get(state.session);
  if (goesWithRun(session, state)) await removeSession(session, { ...options, force: false, why: "cleanup" });
}
