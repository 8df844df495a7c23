import type { RunState } from "../../agent/run-state.ts";
import { CaissonError } from "../../contract/error.ts";
import type { RunFacts } from "../../contract/run-facts.ts";
import type { Session } from "../../contract/session.ts";
import type { SessionRemoved } from "../../contract/session-event.ts";
import type { Runtime } from "../../sandbox/runtime.ts";
import { removeFolder, type SessionStore } from "../../workspace/sessions.ts";
import { snapshotName } from "../runs/run-sandbox.ts";
import { removeViews } from "./kept-view.ts";

type Why = (typeof SessionRemoved)["shape"]["data"]["shape"]["why"]["_output"];

/**
 * Ends what still runs in a session and removes it with everything it kept; its history stays. Throws `conflict` while
 * somebody works in it, unless forced.
 */
export async function removeSession(
  session: Session,
  options: { sessions: SessionStore; runtimes: readonly Runtime[]; force: boolean; why?: Why },
): Promise<void> {
  const { sessions } = options;
  // It may have gone with its last run, as the agent's file says.
  if (!(await sessions.has(session.id))) return;
  await sessions.breakLock(session.id, { force: options.force });
  await removeKeptFiles(session, options);
  await removeFolder(sessions.paths(session).dir);
  await sessions.record(session.id, { type: "session.removed", data: { why: options.why ?? "removed" } });
}

/** Ends the sandboxes of a session, and removes what runtimes keep of its files. */
export async function removeKeptFiles(
  session: Session,
  { sessions, runtimes }: { sessions: Pick<SessionStore, "paths">; runtimes: readonly Runtime[] },
): Promise<void> {
  const { layer, dir } = sessions.paths(session);
  for (const runtime of runtimes) {
    for (const info of await runtime.list().catch(ifNotHere)) {
      if (info.labels.session !== session.id) continue;
      const sandbox = await runtime.open(info.id).catch(() => null);
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

/** A runtime that is not there on this machine has no sandbox of ours. */
function ifNotHere(error: unknown): never[] {
  if (error instanceof CaissonError && (error.code === "unavailable" || error.code === "unsupported")) return [];
  throw error;
}

/** A sandbox that somebody made of it by name still needs it. */
function ifInUse(error: unknown): void {
  if (!(error instanceof CaissonError) || (error.code !== "conflict" && error.code !== "not_found")) throw error;
}

/** Whether a session goes with its run: only one that was made for it, and only because its agent's file says so. */
export function goesWithRun(session: Session, facts: Pick<RunFacts, "status" | "finish">): boolean {
  if (session.scope !== "run" || facts.status !== "ended") return false;
  return session.cleanup === "always" || (session.cleanup === "on_success" && facts.finish === "done");
}

/** What is to be done in a session once a run there has ended. Idempotent. */
export async function leaveSession(state: RunState, options: { sessions: SessionStore; runtimes: readonly Runtime[] }): Promise<void> {
  const { sessions } = options;
  if (state.ended === null) return;
  const { reason } = state.ended;
  await sessions.record(state.session, { type: "session.run_ended", data: { run: state.run, reason } }, { once: true });
  const session = await sessions.get(state.session);
  if (goesWithRun(session, state)) await removeSession(session, { ...options, force: false, why: "cleanup" });
}
