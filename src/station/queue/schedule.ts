import type { WaitsFor } from "../../contract/run/run-queue.ts";

/**
 * A run that has waited this long overtakes a new run that is one point of priority higher. So no run starves: runs of
 * the highest priority pass one of the lowest for at most an hour and 40 minutes.
 */
export const WAIT_PER_POINT_MS = 30_000;

/** A run that waits for a driver. */
export interface WaitingRun {
  run: string;
  owner: string;
  session: string;
  priority: number;
  sinceMs: number;
  startAtMs: number | null;
  /** True if a user paused it: it does not start before a user resumes it. */
  isHeld: boolean;
  /** The room that its sandbox needs. */
  needs: Room;
  /** True if it belongs to a job that has its own sandboxes and may wait for this run, such as a workflow or a spec. */
  isPart: boolean;
}

export interface WorkingRun {
  run: string;
  owner: string;
  session: string;
  isPart: boolean;
}

/** The room that sandboxes take. */
export interface Room {
  sandboxes: number;
  memoryBytes: number;
}

export interface QueueBounds {
  runsMax: number;
  runsPerOwnerMax: number;
  sandboxesMax: number;
  /** Sandboxes of one owner. Beyond it, only runs create sandboxes for this owner. */
  sandboxesPerOwnerMax: number;
  memoryBytesMax: number;
  /** The sum of all sandboxes' memory limits, and of one owner's. */
  promisedBytesMax: number;
  promisedBytesPerOwnerMax: number;
  /** Runs that may wait at a time. */
  queuedMax: number;
  queuedPerOwnerMax: number;
}

export interface ScheduleState {
  waiting: readonly WaitingRun[];
  working: readonly WorkingRun[];
  /** The room taken by all existing sandboxes and those about to be created. */
  taken: Room;
  bounds: QueueBounds;
  /** The last turn of each owner, as a growing number. Absent for an owner who had none. */
  turns: ReadonlyMap<string, number>;
  nowMs: number;
  /** True if no further runs start. */
  isDraining: boolean;
}

export interface Place {
  position: number | null;
  waitsFor: WaitsFor;
  /** If this run waits for its session: the run that uses the session. */
  behind?: string;
}

/**
 * Returns the next run to start, if any. Owners take turns: the one who has waited longest for a turn goes first. Among
 * one owner's runs the priority decides, and a waiting run gains priority over time. If the next run waits for a
 * sandbox or memory, all others wait with it: otherwise small runs would always pass a large one. A run that only waits
 * for its own session, or whose owner is at the limit of runs at work, is skipped. One part of a larger job may always
 * run: workflows keep their sandboxes while they wait for their runs, and would otherwise deadlock.
 */
export function nextToStart(state: ScheduleState): WaitingRun | null {
  const { working, bounds } = state;
  if (state.isDraining || working.length >= bounds.runsMax) return null;
  const next = firstInTurn(state);
  if (next !== undefined && lacking(next.needs, state) === null) return next;
  return partBeyondBounds(state) ?? null;
}

function partBeyondBounds(state: ScheduleState): WaitingRun | undefined {
  if (state.working.some(({ isPart }) => isPart)) return undefined;
  return firstInTurn({ ...state, waiting: state.waiting.filter(({ isPart }) => isPart) });
}

/** Returns every waiting run's place, in the order in which the runs will start, as far as that can be known. */
export function placesIn(state: ScheduleState): Map<string, Place> {
  const places = new Map<string, Place>();
  for (const each of state.waiting)
    if (!isReady(each, state)) places.set(each.run, { position: null, waitsFor: each.isHeld ? "resume" : "time" });
  const order = interleave(byTurn(ready(state), state.turns));
  const next = firstInTurn(state);
  for (const [at, each] of order.entries()) places.set(each.run, { position: at + 1, ...reasonFor(each, next, state) });
  return places;
}

/** Returns the next start time in the future: without other events, nothing changes before it. */
export function nextDueMs({ waiting, nowMs }: Pick<ScheduleState, "waiting" | "nowMs">): number | null {
  const times = waiting.flatMap(({ startAtMs }) => (startAtMs !== null && startAtMs > nowMs ? [startAtMs] : []));
  return times.length === 0 ? null : Math.min(...times);
}

/** Returns the run whose turn it is, whether or not there is room for it. */
function firstInTurn(state: ScheduleState): WaitingRun | undefined {
  for (const own of byTurn(ready(state), state.turns)) {
    const first = own.find((each) => isStartable(each, state));
    if (first !== undefined) return first;
  }
  return undefined;
}

function reasonFor(each: WaitingRun, next: WaitingRun | undefined, state: ScheduleState): Omit<Place, "position"> {
  const { working, bounds } = state;
  if (state.isDraining) return { waitsFor: "drain" };
  const behind = working.find(({ session }) => session === each.session)?.run;
  if (behind !== undefined) return { waitsFor: "session", behind };
  if (fitsNever(each.needs, bounds)) return { waitsFor: each.needs.memoryBytes > bounds.memoryBytesMax ? "memory" : "sandboxes" };
  if (working.length >= bounds.runsMax) return { waitsFor: "runs" };
  if (ownWork(each.owner, working) >= bounds.runsPerOwnerMax) return { waitsFor: "owner" };
  if (partBeyondBounds(state) === each) return { waitsFor: "nothing" };
  if (next !== undefined && next !== each) return { waitsFor: "turn" };
  return { waitsFor: lacking(each.needs, state) ?? "nothing" };
}

function ready(state: ScheduleState): WaitingRun[] {
  return state.waiting.filter((each) => isReady(each, state));
}

function isReady({ isHeld, startAtMs }: WaitingRun, { nowMs }: Pick<ScheduleState, "nowMs">): boolean {
  return !isHeld && (startAtMs === null || startAtMs <= nowMs);
}

/** Returns whether a run could start if there were room. */
function isStartable(each: WaitingRun, { working, bounds }: ScheduleState): boolean {
  if (ownWork(each.owner, working) >= bounds.runsPerOwnerMax || fitsNever(each.needs, bounds)) return false;
  return !working.some(({ session }) => session === each.session);
}

const ownWork = (owner: string, working: readonly WorkingRun[]) => working.filter((each) => each.owner === owner).length;

const fitsNever = (needs: Room, bounds: QueueBounds) => needs.memoryBytes > bounds.memoryBytesMax || needs.sandboxes > bounds.sandboxesMax;

/** Returns what is in short supply for these needs, or null. */
export function lacking(needs: Room, { taken: takenRoom, bounds }: Pick<ScheduleState, "taken" | "bounds">): "sandboxes" | "memory" | null {
  if (needs.sandboxes > 0 && takenRoom.sandboxes + needs.sandboxes > bounds.sandboxesMax) return "sandboxes";
  if (needs.memoryBytes > 0 && takenRoom.memoryBytes + needs.memoryBytes > bounds.memoryBytesMax) return "memory";
  return null;
}

/** Groups the runs by owner, each group sorted by urgency. The owner who has waited longest for a turn comes first. */
function byTurn(runs: readonly WaitingRun[], turns: ReadonlyMap<string, number>): WaitingRun[][] {
  const owners = [...Map.groupBy(runs, ({ owner }) => owner).values()];
  const sorted = owners.map((own) => own.toSorted((a, b) => urgency(a) - urgency(b) || (a.run < b.run ? -1 : 1)));
  const turnOf = ([first]: WaitingRun[]) => turns.get(first?.owner ?? "") ?? -1;
  return sorted.toSorted((a, b) => turnOf(a) - turnOf(b) || urgency(a[0]) - urgency(b[0]));
}

/**
 * Returns a sort key: smaller goes first. Waiting raises the priority of all runs at the same rate, so the order of two
 * runs never changes, and we can compute it without a clock.
 */
function urgency(each: WaitingRun | undefined): number {
  return each === undefined ? 0 : Math.max(each.sinceMs, each.startAtMs ?? 0) - each.priority * WAIT_PER_POINT_MS;
}

function interleave(owners: readonly WaitingRun[][]): WaitingRun[] {
  const rounds = Math.max(0, ...owners.map((own) => own.length));
  return Array.from({ length: rounds }, (_, round) => owners.flatMap((own) => own[round] ?? [])).flat();
}
