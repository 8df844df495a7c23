import { join } from "node:path";
import { CaissonError } from "../../contract/error.ts";
import { type Pruned, type PrunedThing, PruneMachine } from "../../contract/machine-verbs.ts";
import { parseRequest } from "../../contract/parse-request.ts";
import type { Station } from "../station.ts";
import { sizeOf } from "./usage.ts";

export type PrunedStation = Pick<Station, "sandboxes" | "sessions" | "runs">;

const RUNS_MAX = 10_000;

interface PruneOptions {
  station: PrunedStation;
  stateDir: string;
}

/** See `MachineVerbs.prune`. One that cannot be removed any more does not keep the others. */
export async function pruneMachine(request: PruneMachine, options: PruneOptions): Promise<Pruned> {
  const { olderThanMs, dryRun, only } = parseRequest(PruneMachine, request, "to prune");
  const isOld = (at: string) => Date.now() - Date.parse(at) >= olderThanMs;
  const found = [
    ...(await unusedSandboxes(options)),
    ...(await unusedSessions(options, isOld)),
    ...(await unusedSnapshots(options, isOld)),
  ];
  const gone = new Set(found.filter(({ kind }) => kind === "session").map(({ id }) => id));
  found.push(...(await unusedRuns(options, { isOld, gone })));
  const chosen = only === undefined ? found : found.filter(({ id }) => only.includes(id));
  const things: PrunedThing[] = [];
  for (const thing of chosen) if (dryRun || (await isRemoved(thing, options.station))) things.push(thing);
  return { things, bytes: things.reduce((sum, { bytes }) => sum + bytes, 0), dryRun };
}

/** Kept ones that nothing runs in any more, and those whose record is damaged. Those of runs go with their runs. */
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
    await add(id, name, "nothing runs in it any more");
  }
  return things;
}

/** One that does not answer for another reason than its end is left alone. */
async function isAlive(id: string, { sandboxes }: PrunedStation): Promise<boolean> {
  try {
    await (await sandboxes.hold(id)).release();
    return true;
  } catch (error) {
    return !(error instanceof CaissonError && (error.code === "lost" || error.code === "protocol"));
  }
}

/** Nobody used them for a while, and everything in them was applied, as far as that can be known. */
async function unusedSessions({ station, stateDir }: PruneOptions, isOld: (at: string) => boolean): Promise<PrunedThing[]> {
  const things: PrunedThing[] = [];
  for (const { id, lastUsedAt, lock } of (await station.sessions.list()).sessions) {
    if (!isOld(lastUsedAt) || (lock && !lock.stale)) continue;
    if ((await station.sessions.unapplied(id)).files !== 0) continue;
    const { runs } = await station.runs.list({ session: id, state: "open", limit: 1 });
    if (runs.length > 0) continue;
    const { bytes } = await sizeOf(join(stateDir, "sessions", id));
    things.push({ kind: "session", id, name: null, bytes, why: "nothing in it is unapplied" });
  }
  return things;
}

/** Those that somebody named are somebody's; those of sessions go with them. */
async function unusedSnapshots({ station }: PruneOptions, isOld: (at: string) => boolean): Promise<PrunedThing[]> {
  const { snapshots } = await station.sandboxes.snapshots();
  const unnamed = snapshots.filter(({ name, createdAt }) => name === null && isOld(createdAt));
  return unnamed.map(({ id, bytes }) => ({ kind: "snapshot", id, name: null, bytes, why: "it has no name" }));
}

/** That are over, and whose sessions are gone or go now: nothing of them is left but their logs. */
async function unusedRuns(
  { station }: PruneOptions,
  { isOld, gone }: { isOld: (at: string) => boolean; gone: ReadonlySet<string> },
): Promise<PrunedThing[]> {
  const { runs } = await station.runs.list({ state: "ended", parent: null, limit: RUNS_MAX });
  const { sessions, damaged } = await station.sessions.list();
  const known = new Set([...sessions, ...damaged].map(({ id }) => id).filter((id) => !gone.has(id)));
  const unused = runs.filter(({ session, updatedAt }) => isOld(updatedAt) && !known.has(session));
  return unused.map(({ run, name }) => ({ kind: "run", id: run, name, bytes: 0, why: "it ended, and its session is gone" }));
}

/** What somebody began to use meanwhile stays. */
async function isRemoved({ kind, id }: PrunedThing, { sandboxes, sessions, runs }: PrunedStation): Promise<boolean> {
  try {
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
