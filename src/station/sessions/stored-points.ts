import { CaissonError } from "../../contract/error/error.ts";
import type { SnapshotId } from "../../contract/ids.ts";
import type { Session, StoredPoint } from "../../contract/session/session.ts";
import { ignore } from "../../lib/failures.ts";
import { newId } from "../../lib/new-id.ts";
import type { Runtime } from "../../sandbox/runtime.ts";
import type { SessionStore } from "../../workspace/sessions.ts";

/** How many turns can be undone. */
const POINTS_MAX = 10;
/** If a session has changed more than this, we store no copy, because a turn must not wait for it. */
export const COPY_BYTES_MAX = 256 * 1024 * 1024;

interface RestoreOptions {
  sessions: SessionStore;
  runtime: Runtime;
}

/**
 * Stores the files of a session before a turn of a run, for `restoreFiles`. The caller must hold the session. If the
 * files cannot be stored, the turn cannot be undone.
 */
export async function storePoint(session: Session, turn: { run: string; turnSeq: number }, options: RestoreOptions): Promise<void> {
  const { sessions } = options;
  const known = await sessions.points(session.id);
  const files = await filesNow(session, options).catch((error: unknown) => {
    if (error instanceof CaissonError) return null;
    throw error;
  });
  const isSameTurn = (point: StoredPoint) => point.run === turn.run && point.turnSeq === turn.turnSeq;
  const points = [...known.filter((point) => !isSameTurn(point)), ...(files === null ? [] : [{ ...turn, files }])].slice(-POINTS_MAX);
  await sessions.notePoints(session.id, points);
  await forget(
    session,
    known.filter((point) => !points.includes(point)),
    options,
  );
}

async function filesNow(session: Session, { sessions, runtime }: RestoreOptions): Promise<StoredPoint["files"]> {
  if (runtime.copyLayer === undefined) return { kind: "snapshot", id: session.snapshot?.id ?? null };
  const copy = newId("copy");
  await runtime.copyLayer(sessions.paths(session).layer, { name: copy, bytesMax: COPY_BYTES_MAX });
  return { kind: "layer", copy };
}

/**
 * Restores the files of a session from a point; null restores the files from before its first run. The caller must hold
 * the session.
 */
export async function restoreFiles(session: Session, files: StoredPoint["files"] | null, options: RestoreOptions): Promise<void> {
  const { sessions, runtime } = options;
  if (runtime.restoreLayer !== undefined) {
    await runtime.restoreLayer(sessions.paths(session).layer, files?.kind === "layer" ? files.copy : null);
    return;
  }
  const id = files?.kind === "snapshot" ? files.id : null;
  await sessions.update(session.id, { snapshot: id === null ? null : { id, runtime: runtime.name } });
  if (session.snapshot !== null && session.snapshot.id !== id) await dropSnapshot(session.snapshot.id, session.id, options);
}

/** Removes a session's snapshot that is no longer needed, unless the session can still return to it. */
export async function dropSnapshot(id: SnapshotId, session: string, { sessions, runtime }: RestoreOptions): Promise<void> {
  const points = await sessions.points(session);
  if (points.some(({ files }) => files.kind === "snapshot" && files.id === id)) return;
  await ignore(runtime.removeSnapshot(id), "another session may use it; removing that session tries again");
}

/** Forgets all points of a session, whose files then belong to another workspace. The caller must hold the session. */
export async function forgetPoints(session: Session, options: RestoreOptions): Promise<void> {
  const points = await options.sessions.points(session.id);
  await options.sessions.notePoints(session.id, []);
  await forget(session, points, options);
}

async function forget(session: Session, points: readonly StoredPoint[], options: RestoreOptions): Promise<void> {
  const { runtime, sessions } = options;
  for (const { files } of points) {
    if (files.kind === "layer") await runtime.removeLayerCopy?.(sessions.paths(session).layer, files.copy);
    else if (files.id !== null && files.id !== session.snapshot?.id) await dropSnapshot(files.id, session.id, options);
  }
}
