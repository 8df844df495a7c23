import type { WaitsFor } from "../../contract/run-queue.ts";

/**
 * Who waits this long overtakes a run that is one point of priority higher and has just come. So nobody waits for ever:
 * a run of the lowest priority is passed by those of the highest for an hour and 40 minutes at most.
 */
export const WAIT_PER_POINT_MS = 30_000;

/** A run that waits to be driven. */
export interface WaitingRun {
  run: string;
  owner: string;
  session: string;
  priority: number;
  sinceMs: number;
  startAtMs: number | null;
  /** It was paused, and is not started before somebody resumes it. */
  isHeld: boolean;
  /** Of its sandbox. */
  needs: Room;
  /** Something else waits for it that may have sandboxes of its own: a workflow, a spec … */
  isPart: boolean;
}

export interface WorkingRun {
  run: string;
  owner: string;
  session: string;
  isPart: boolean;
}

/** What sandboxes take. */
export interface Room {
  sandboxes: number;
  memoryBytes: number;
}

export interface QueueBounds {
  runsMax: number;
  runsPerOwnerMax: number;
  sandboxesMax: number;
  /** Of one owner, who then makes no more without a run. */
  sandboxesPerOwnerMax: number;
  memoryBytesMax: number;
  /** What sandboxes may use together if each takes all it may, and those of one owner. */
  promisedBytesMax: number;
  promisedBytesPerOwnerMax: number;
  /** Runs that may wait. */
  queuedMax: number;
  queuedPerOwnerMax: number;
}

export interface ScheduleState {
  waiting: readonly WaitingRun[];
  working: readonly WorkingRun[];
  /** By all sandboxes there are, and those that are about to be made. */
  taken: Room;
  bounds: QueueBounds;
  /** When each owner had the last turn, as a number that grows. Absent: never. */
  turns: ReadonlyMap<string, number>;
  nowMs: number;
  /** Nothing more is started. */
  isDraining: boolean;
}

export interface Place {
  position: number | null;
  waitsFor: WaitsFor;
  /** The run that has the session, of one that waits for it. */
  behind?: string;
}

/**
 * The run to be started now, if any. Owners take turns: it is the one's who had none for longest. Among one owner's
 * runs the priority decides, and who waits longer gains on those above. The run whose turn it is waits for a sandbox or
 * memory, and everybody with it: otherwise small ones would pass a large one for ever. One that only waits for its own
 * session, or whose owner has as many at work as it may, is passed over. One part of something larger may always work:
 * workflows keep their sandboxes while they wait for their runs, and would otherwise wait for each other for ever.
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

/** Every waiting run's place: the order is that of their starts, as far as it can be known. */
export function placesIn(state: ScheduleState): Map<string, Place> {
  const places = new Map<string, Place>();
  for (const each of state.waiting)
    if (!isReady(each, state)) places.set(each.run, { position: null, waitsFor: each.isHeld ? "resume" : "time" });
  const order = interleaved(byTurn(ready(state), state.turns));
  const next = firstInTurn(state);
  for (const [at, each] of order.entries()) places.set(each.run, { position: at + 1, ...reasonFor(each, next, state) });
  return places;
}

/** When something may change by itself: the next start time that is still to come. */
export function nextDueMs({ waiting, nowMs }: Pick<ScheduleState, "waiting" | "nowMs">): number | null {
  const times = waiting.flatMap(({ startAtMs }) => (startAtMs !== null && startAtMs > nowMs ? [startAtMs] : []));
  return times.length === 0 ? null : Math.min(...times);
}

/** Whose turn it is, whether there is room for it or not. */
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

/** As soon as there is room. */
function isStartable(each: WaitingRun, { working, bounds }: ScheduleState): boolean {
  if (ownWork(each.owner, working) >= bounds.runsPerOwnerMax || fitsNever(each.needs, bounds)) return false;
  return !working.some(({ session }) => session === each.session);
}

const ownWork = (owner: string, working: readonly WorkingRun[]) => working.filter((each) => each.owner === owner).length;

const fitsNever = (needs: Room, bounds: QueueBounds) => needs.memoryBytes > bounds.memoryBytesMax || needs.sandboxes > bounds.sandboxesMax;

/** What there is not enough of for this. */
export function lacking(needs: Room, { taken, bounds }: Pick<ScheduleState, "taken" | "bounds">): "sandboxes" | "memory" | null {
  if (needs.sandboxes > 0 && taken.sandboxes + needs.sandboxes > bounds.sandboxesMax) return "sandboxes";
  if (needs.memoryBytes > 0 && taken.memoryBytes + needs.memoryBytes > bounds.memoryBytesMax) return "memory";
  return null;
}

/** The runs of each owner in their order, the owner first who had no turn for longest. */
function byTurn(runs: readonly WaitingRun[], turns: ReadonlyMap<string, number>): WaitingRun[][] {
  const owners = [...Map.groupBy(runs, ({ owner }) => owner).values()];
  const sorted = owners.map((own) => own.toSorted((a, b) => urgency(a) - urgency(b) || (a.run < b.run ? -1 : 1)));
  const turnOf = ([first]: WaitingRun[]) => turns.get(first?.owner ?? "") ?? -1;
  return sorted.toSorted((a, b) => turnOf(a) - turnOf(b) || urgency(a[0]) - urgency(b[0]));
}

/**
 * The smaller, the sooner. Waiting counts for all alike, so that the order of two never changes: no clock is needed to
 * tell it.
 */
function urgency(each: WaitingRun | undefined): number {
  return each === undefined ? 0 : Math.max(each.sinceMs, each.startAtMs ?? 0) - each.priority * WAIT_PER_POINT_MS;
}

function interleaved(owners: readonly WaitingRun[][]): WaitingRun[] {
  const rounds = Math.max(0, ...owners.map((own) => own.length));
  return Array.from({ length: rounds }, (_, round) => owners.flatMap((own) => own[round] ?? [])).flat();
}
