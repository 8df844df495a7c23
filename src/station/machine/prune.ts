import { join } from "node:path";
import { CaissonError } from "../../contract/error/error.ts";
import { parseRequest } from "../../contract/error/parse-request.ts";
import { type Pruned, type PrunedThing, PruneMachine } from "../../contract/machine/machine-verbs.ts";
import { type StorageKind, storageKindNames, storageKinds } from "../../contract/machine/storage-kinds.ts";
import type { Station } from "../../verbs/station.ts";
import { sizeOf } from "./size-of.ts";

export type PrunedStation = Pick<Station, "sandboxes" | "sessions" | "runs">;

const RUNS_MAX = 10_000;

/** What prune knows about one kind of stored things. */
export interface PrunedStore {
  /** Returns the things that nothing uses. `isOld` tells whether something was unused for long enough since a time. */
  find(isOld: IsOld, found: readonly PrunedThing[]): Promise<PrunedThing[]>;
  /** Returns false if the thing is in use again, or no longer exists. Safe at any moment, beside other processes. */
  remove(id: string, isOld: IsOld): Promise<boolean>;
}
export type IsOld = (at: string) => boolean;
export type PrunedStores = Readonly<Record<StorageKind, PrunedStore>>;
/** The kinds that are things of the station's verbs; the others are files. */
export type FileStores = Omit<PrunedStores, "sandboxes" | "sessions" | "snapshots" | "runs">;

interface PruneOptions {
  station: PrunedStation;
  stateDir: string;
  files: FileStores;
}

/** See `MachineVerbs.prune`. Skips things that can no longer be removed. */
export async function pruneMachine(request: PruneMachine, options: PruneOptions): Promise<Pruned> {
  const { olderThanMs, dryRun, only, kinds } = parseRequest(PruneMachine, request, "to prune");
  const isOld = (at: string) => Date.now() - Date.parse(at) >= olderThanMs;
  const stores = storesOf(options);
  const found: { kind: StorageKind; thing: PrunedThing }[] = [];
  for (const kind of storageKindNames) {
    if (kinds === undefined ? storageKinds[kind].isOnRequest : !kinds.includes(kind)) continue;
    const things = await stores[kind].find(
      isOld,
      found.map(({ thing }) => thing),
    );
    found.push(...things.map((thing) => ({ kind, thing })));
  }
  const things: PrunedThing[] = [];
  for (const { kind, thing } of found) {
    if (only !== undefined && !only.includes(thing.id)) continue;
    if (dryRun || (await removeUnused(() => stores[kind].remove(thing.id, isOld)))) things.push(thing);
  }
  return { things, bytes: things.reduce((sum, { bytes }) => sum + bytes, 0), dryRun };
}

function storesOf(options: PruneOptions): PrunedStores {
  const { sandboxes, sessions, runs } = options.station;
  const isDone = (work: Promise<unknown>) => work.then(() => true);
  return {
    ...options.files,
    sandboxes: { find: () => unusedSandboxes(options), remove: (id) => isDone(sandboxes.remove(id)) },
    sessions: { find: (isOld) => unusedSessions(options, isOld), remove: (id) => isDone(sessions.discard(id, { why: "removed" })) },
    snapshots: { find: (isOld) => unusedSnapshots(options, isOld), remove: (id) => isDone(sandboxes.removeSnapshot(id)) },
    runs: {
      find(isOld, found) {
        const removedSessions = new Set(found.filter(({ kind }) => kind === "session").map(({ id }) => id));
        return unusedRuns(options, { isOld, gone: removedSessions });
      },
      remove: (id) => isDone(runs.remove(id)),
    },
  };
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

/** Returns false if the thing is in use again or no longer exists. */
async function removeUnused(remove: () => Promise<boolean>): Promise<boolean> {
  try {
    return await remove();
  } catch (error) {
    if (error instanceof CaissonError && (error.code === "conflict" || error.code === "not_found")) return false;
    throw error;
  }
}
