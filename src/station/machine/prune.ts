import { join } from "node:path";
import { CaissonError } from "../../contract/error/error.ts";
import { parseRequest } from "../../contract/error/parse-request.ts";
import { type Pruned, type PrunedThing, PruneMachine } from "../../contract/machine/machine-verbs.ts";
import type { Station } from "../../verbs/station.ts";
import { sizeOf } from "./usage.ts";

export type PrunedStation = Pick<Station, "sandboxes" | "sessions" | "runs">;

const RUNS_MAX = 10_000;

/** Stored files of one kind that can be removed when nothing uses them. */
export interface PrunedFiles {
  readonly kind: PrunedThing["kind"];
  find(isOld: (at: string) => boolean): Promise<PrunedThing[]>;
  /** Returns false if the files are in use again. */
  remove(id: string): Promise<boolean>;
}

interface PruneOptions {
  station: PrunedStation;
  stateDir: string;
  /** The stored files that are not things of the station's verbs. */
  files: readonly PrunedFiles[];
}

/** See `MachineVerbs.prune`. Skips things that can no longer be removed. */
export async function pruneMachine(request: PruneMachine, options: PruneOptions): Promise<Pruned> {
  const { olderThanMs, dryRun, only } = parseRequest(PruneMachine, request, "to prune");
  const isOld = (at: string) => Date.now() - Date.parse(at) >= olderThanMs;
  const found = [
    ...(await unusedSandboxes(options)),
    ...(await unusedSessions(options, isOld)),
    ...(await unusedSnapshots(options, isOld)),
  ];
  for (const files of options.files) found.push(...(await files.find(isOld)));
  const removedSessions = new Set(found.filter(({ kind }) => kind === "session").map(({ id }) => id));
  found.push(...(await unusedRuns(options, { isOld, gone: removedSessions })));
  const chosen = only === undefined ? found : found.filter(({ id }) => only.includes(id));
  const things: PrunedThing[] = [];
  for (const thing of chosen) if (dryRun || (await removeIfUnused(thing, options))) things.push(thing);
  return { things, bytes: things.reduce((sum, { bytes }) => sum + bytes, 0), dryRun };
}

/**
 * Returns kept sandboxes without processes, and sandboxes with a damaged record. The sandboxes of runs are
 * removed with their runs.
 */
async function unusedSandboxes({ station, stateDir }: PruneOptions): Promise<PrunedThing[]> {
  const { sandboxes, damaged } = await station.sandboxes.list();
  const things: PrunedThing[] = [];
  const add = async (id: string, name: string | null, why: string) => {
    const { bytes } = await sizeOf(join(stateDir, "sandboxes", id));
    things.push({ kind: "sandbox", id, name, bytes, why });
  };
  for (const { id } of damaged) await add(id, null, "its record is damaged");
  for (const { id, name = null, state, keep, labels } of sandboxes) {
    if (!keep || labels.run !== undefined || state === "paused") continue;
    if (state === "running" && (await isAlive(id, station))) continue;
    await add(id, name, "nothing runs in it");
  }
  return things;
}

/** Counts a sandbox that does not respond as alive unless the reason is its end. */
async function isAlive(id: string, { sandboxes }: PrunedStation): Promise<boolean> {
  try {
    await (await sandboxes.hold(id)).release();
    return true;
  } catch (error) {
    return !(error instanceof CaissonError && (error.code === "lost" || error.code === "protocol"));
  }
}

/** Returns sessions that have not been used for long and, as far as is known, have no unapplied changes. */
async function unusedSessions({ station, stateDir }: PruneOptions, isOld: (at: string) => boolean): Promise<PrunedThing[]> {
  const things: PrunedThing[] = [];
  for (const { id, lastUsedAt, lock } of (await station.sessions.list()).sessions) {
    if (!isOld(lastUsedAt) || (lock && !lock.stale)) continue;
    if ((await station.sessions.unapplied(id)).files !== 0) continue;
    const { runs } = await station.runs.list({ session: id, state: "open", limit: 1 });
    if (runs.length > 0) continue;
    const { bytes } = await sizeOf(join(stateDir, "sessions", id));
    things.push({ kind: "session", id, name: null, bytes, why: "it has no unapplied changes" });
  }
  return things;
}

/**
 * Returns snapshots without a name. A name means that a user still wants the snapshot; snapshots of sessions are
 * removed with their session.
 */
async function unusedSnapshots({ station }: PruneOptions, isOld: (at: string) => boolean): Promise<PrunedThing[]> {
  const { snapshots } = await station.sandboxes.snapshots();
  const unnamed = snapshots.filter(({ name, createdAt }) => name === null && isOld(createdAt));
  return unnamed.map(({ id, bytes }) => ({ kind: "snapshot", id, name: null, bytes, why: "it has no name" }));
}

/** Returns ended runs whose session was removed or is removed now, so that only their logs are left. */
async function unusedRuns(
  { station }: PruneOptions,
  { isOld, gone: removedSessions }: { isOld: (at: string) => boolean; gone: ReadonlySet<string> },
): Promise<PrunedThing[]> {
  const { runs } = await station.runs.list({ state: "ended", parent: null, limit: RUNS_MAX });
  const { sessions, damaged } = await station.sessions.list();
  const known = new Set([...sessions, ...damaged].map(({ id }) => id).filter((id) => !removedSessions.has(id)));
  const unused = runs.filter(({ session, updatedAt }) => isOld(updatedAt) && !known.has(session));
  return unused.map(({ run, name }) => ({ kind: "run", id: run, name, bytes: 0, why: "it ended, and its session was removed" }));
}

/** Removes a thing and returns true, or returns false if it is in use again or no longer exists. */
async function removeIfUnused({ kind, id }: PrunedThing, { station, files }: PruneOptions): Promise<boolean> {
  const { sandboxes, sessions, runs } = station;
  try {
    const ofKind = files.find((each) => each.kind === kind);
    if (ofKind !== undefined) return await ofKind.remove(id);
    if (kind === "sandbox") await sandboxes.remove(id);
    else if (kind === "session") await sessions.discard(id, { why: "removed" });
    else if (kind === "snapshot") await sandboxes.removeSnapshot(id);
    else await runs.remove(id);
    return true;
  } catch (error) {
    if (error instanceof CaissonError && (error.code === "conflict" || error.code === "not_found")) return false;
    throw error;
  }
}
