import type { StepFiles } from "../../agent/end-step.ts";
import { CaissonError } from "../../contract/error/error.ts";
import type { SandboxId, SnapshotId } from "../../contract/ids.ts";
import type { Session, StoredPoint } from "../../contract/session/session.ts";
import { defined } from "../../lib/defined.ts";
import { ignore } from "../../lib/failures.ts";
import type { Runtime } from "../../sandbox/runtime.ts";
import type { SessionStore } from "../../workspace/sessions.ts";
import { snapshotName } from "../vocabulary/station-names.ts";
import { thinPoints } from "./thin-points.ts";

/** A step that changed more than this gets no point, because the next one must not wait for it. */
export const POINT_BYTES_MAX = 4 * 1024 ** 3;

interface RestoreOptions {
  sessions: SessionStore;
  runtime: Runtime;
}

/**
 * Stores the files of a session before a turn of a run, for `restoreFiles`. The caller must hold the session. If the
 * files cannot be stored, the turn cannot be undone.
 */
export async function storePoint(session: Session, turn: { run: string; turnSeq: number }, options: RestoreOptions): Promise<void> {
  const stored = await filesNow(session, options).catch((error: unknown) => {
    if (error instanceof CaissonError) return null;
    throw error;
  });
  const isSame = (point: StoredPoint) => point.run === turn.run && point.turnSeq === turn.turnSeq;
  await replacePoints(session, isSame, stored === null ? null : { ...turn, at: new Date().toISOString(), ...stored }, options);
}

async function filesNow(session: Session, { sessions, runtime }: RestoreOptions): Promise<Pick<StoredPoint, "files" | "bytes">> {
  if (runtime.points === undefined) return { files: { kind: "snapshot", id: session.snapshot?.id ?? null } };
  const { id, bytes } = await runtime.points.take(sessions.paths(session).layer, { bytesMax: POINT_BYTES_MAX });
  return { files: { kind: "point", id }, bytes };
}

/**
 * Stores the files of a session after a step of the run that works in it. `unchanged` is the last point if nothing can
 * have changed since. Null if the runtime stores only the files at the end of each turn. Throws the errors of
 * `MachinePoints.take`.
 */
export async function storeStep(
  session: Session,
  { run, step, sandbox, unchanged }: { run: string; step: number; sandbox: SandboxId | null; unchanged: string | null },
  options: RestoreOptions,
): Promise<StepFiles | null> {
  const { sessions, runtime } = options;
  if (runtime.snapshotPoints !== undefined) return await storeSnapshot(session, { run, step, sandbox, unchanged }, options);
  if (runtime.points === undefined) return null;
  const take = { ...defined({ sandbox: sandbox ?? undefined }), bytesMax: POINT_BYTES_MAX };
  const found =
    unchanged !== null
      ? { id: unchanged, files: 0, bytes: 0, isNew: false }
      : await runtime.points.take(sessions.paths(session).layer, take);
  const { id, files, bytes, isNew } = found;
  const isSame = (point: StoredPoint) => point.run === run && point.step === step;
  await replacePoints(session, isSame, { run, step, at: new Date().toISOString(), bytes, files: { kind: "point", id } }, options);
  return { point: id, hasChanged: isNew, files, bytes };
}

/** Like `storeStep`, for runtimes whose points are snapshots. */
async function storeSnapshot(
  session: Session,
  { run, step, sandbox, unchanged }: { run: string; step: number; sandbox: SandboxId | null; unchanged: string | null },
  options: RestoreOptions,
): Promise<StepFiles | null> {
  const { sessions, runtime } = options;
  const known = await sessions.points(session.id);
  const newest = known.findLast((point) => point.step !== undefined && point.run === run)?.files;
  const last = newest?.kind === "snapshot" ? newest.id : null;
  const base = session.snapshot?.id ?? null;
  const isTaken = unchanged === null && sandbox !== null;
  const point = isTaken
    ? await runtime.snapshotPoints?.take(sessions.paths(session).layer, { sandbox, last, base, bytesMax: POINT_BYTES_MAX })
    : undefined;
  // Without a sandbox, nothing has changed since the session's files were last stored.
  const { id, files, bytes, isNew } = point ?? { id: unchanged ?? base, files: 0, bytes: 0, isNew: false };
  const isSame = (each: StoredPoint) => each.run === run && each.step === step;
  await replacePoints(session, isSame, { run, step, at: new Date().toISOString(), bytes, files: { kind: "snapshot", id } }, options);
  return { point: id, hasChanged: isNew, files, bytes };
}

/** Replaces a point, and forgets those that the policy no longer keeps. */
async function replacePoints(
  session: Session,
  isReplaced: (point: StoredPoint) => boolean,
  fresh: StoredPoint | null,
  options: RestoreOptions,
): Promise<void> {
  const { sessions } = options;
  const known = await sessions.points(session.id);
  const points = thinPoints([...known.filter((point) => !isReplaced(point)), ...(fresh === null ? [] : [fresh])]);
  await sessions.notePoints(session.id, points);
  await removeUnlisted(session, { known, points }, options);
}

/** Moves points of a run to the session of the run that continues from them. */
export async function movePoints(
  { from, to, run, isMoved }: { from: Session; to: Session; run: string; isMoved: (point: StoredPoint) => boolean },
  options: RestoreOptions,
): Promise<void> {
  const { sessions, runtime } = options;
  const known = await sessions.points(from.id);
  const moved = known.filter(isMoved);
  if (moved.length === 0) return;
  const { layer } = sessions.paths(to);
  for (const { files } of moved) {
    if (files.kind === "point" && files.id !== null) await runtime.points?.keep(layer, files.id);
    if (files.kind === "snapshot" && files.id !== null) await runtime.snapshotPoints?.keep(layer, files.id);
  }
  await sessions.notePoints(to.id, [...moved.map((point) => ({ ...point, run })), ...(await sessions.points(to.id))]);
  const points = known.filter((point) => !isMoved(point));
  await sessions.notePoints(from.id, points);
  await removeUnlisted(from, { known: points, points }, options);
}

/** Returns a point's name in `MachinePoints`. Earlier versions made whole copies of the workspace. */
export function pointName(files: Exclude<StoredPoint["files"], { kind: "snapshot" }>): string | null {
  return files.kind === "layer" ? `copy-${files.copy}` : files.id;
}

/**
 * Restores the files of a session from a point; null restores the files from before its first run. The caller must hold
 * the session.
 */
export async function restoreFiles(session: Session, files: StoredPoint["files"] | null, options: RestoreOptions): Promise<void> {
  const { sessions, runtime } = options;
  if (runtime.points !== undefined) {
    const point = files === null || files.kind === "snapshot" ? null : pointName(files);
    // Noted first: after a crash, older files than needed are compared.
    await sessions.update(session.id, { restoredAt: new Date().toISOString() });
    await runtime.points.restore(sessions.paths(session).layer, point);
    await sessions.update(session.id, { restoredAt: new Date().toISOString() });
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
  const { snapshotPoints } = runtime;
  if (snapshotPoints !== undefined) {
    await snapshotPoints.remove(sessions.paths(await sessions.get(session)).layer, id);
    const isOwn = (await runtime.snapshots()).some((each) => each.id === id && each.name === snapshotName(session));
    if (!isOwn) return;
  }
  await ignore(runtime.removeSnapshot(id), "another session may use it; removing that session tries again");
}

/** Forgets all points of a session, whose files then belong to another workspace. The caller must hold the session. */
export async function forgetPoints(session: Session, options: RestoreOptions): Promise<void> {
  const known = await options.sessions.points(session.id);
  await options.sessions.notePoints(session.id, []);
  await removeUnlisted(session, { known, points: [] }, options);
}

/**
 * Removes the files of points that are no longer listed, and what a process left that died before it listed a point.
 */
async function removeUnlisted(
  session: Session,
  { known, points }: { known: readonly StoredPoint[]; points: readonly StoredPoint[] },
  options: RestoreOptions,
): Promise<void> {
  const { runtime, sessions } = options;
  for (const { files } of known.filter((point) => !points.includes(point)))
    if (files.kind === "snapshot" && files.id !== null && files.id !== session.snapshot?.id)
      await dropSnapshot(files.id, session.id, options);
  const { layer } = sessions.paths(session);
  if (runtime.snapshotPoints !== undefined) {
    const { snapshot } = await sessions.get(session.id);
    const isListed = (id: string) => id === snapshot?.id || points.some(({ files }) => files.kind === "snapshot" && files.id === id);
    for (const id of await runtime.snapshotPoints.list(layer)) if (!isListed(id)) await runtime.snapshotPoints.remove(layer, id);
  }
  if (runtime.points === undefined) return;
  const listed = new Set(points.flatMap(({ files }) => (files.kind === "snapshot" ? [] : [pointName(files)])));
  for (const name of await runtime.points.list(layer)) if (!listed.has(name)) await runtime.points.remove(layer, name);
}
