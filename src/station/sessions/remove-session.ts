import { rename } from "node:fs/promises";
import { dirname, join } from "node:path";
import { CaissonError } from "../../contract/error/error.ts";
import type { Session } from "../../contract/session/session.ts";
import type { SessionRemoved } from "../../contract/session/session-event.ts";
import { type Crashpoint, noCrash } from "../../lib/crashpoint.ts";
import { ABSENT, ifErrno, ignore } from "../../lib/failures.ts";
import { newId } from "../../lib/new-id.ts";
import type { Runtime } from "../../sandbox/runtime.ts";
import { removeFolder, type SessionStore } from "../../workspace/sessions.ts";
import { snapshotName } from "../vocabulary/station-names.ts";
import { removeViews } from "./point-view.ts";
import { GONE_PREFIX, LEAVING_PREFIX } from "./session-folders.ts";

type Removed = (typeof SessionRemoved)["shape"]["data"]["_output"];

/**
 * Ends what still runs in a session, and removes the session with all its files. Its history stays. Throws `conflict`
 * while a run works in it, unless forced.
 */
export async function removeSession(
  session: Session,
  options: { sessions: SessionStore; runtimes: readonly Runtime[]; force: boolean; why?: Removed["why"] },
): Promise<void> {
  const { sessions } = options;
  // Its last run may have removed it already.
  if (!(await sessions.has(session.id))) return;
  await sessions.breakLock(session.id, { force: options.force });
  await removeFiles(session, { ...options, removed: { why: options.why ?? "removed" } });
}

/**
 * Removes a session with all its files, under its lock. The folder leaves its place in one step: a process that dies
 * leaves either a session, which can be removed again, or a folder that the next process removes.
 */
export async function removeFiles(
  session: Session,
  options: { sessions: SessionStore; runtimes: readonly Runtime[]; removed: Removed; crashpoint?: Crashpoint },
): Promise<void> {
  const { sessions, crashpoint = noCrash } = options;
  const { dir } = sessions.paths(session);
  // First, so that a session whose removal was interrupted lists no point without files.
  await ignore(sessions.notePoints(session.id, []), "a session without a folder has no list");
  await removeKeptFiles(session, options);
  crashpoint("session.removed:before");
  const trashFolder = join(dirname(dir), `${GONE_PREFIX}${newId("ses")}`);
  await ifErrno(rename(dir, trashFolder), ABSENT, undefined);
  crashpoint("session.moved:after");
  await sessions.record(session.id, { type: "session.removed", data: options.removed });
  await removeFolder(trashFolder);
  await removeFolder(join(dirname(dir), `${LEAVING_PREFIX}${session.id}`));
  crashpoint("session.removed:after");
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
      if (name === snapshotName(session.id) || (id === session.snapshot?.id && runtime.snapshotPoints === undefined))
        await runtime.removeSnapshot(id).catch(ifInUse);
    if (session.runtime !== runtime.name && session.runtime !== null) continue;
    await removePoints(layer, runtime).catch(ifNotHere);
    await runtime.removeLayer?.(layer).catch(ifNotHere);
    await removeViews(dir, runtime).catch(ifNotHere);
  }
}

async function removePoints(layer: string, { snapshotPoints }: Runtime): Promise<void> {
  for (const id of (await snapshotPoints?.list(layer)) ?? []) await snapshotPoints?.remove(layer, id);
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
