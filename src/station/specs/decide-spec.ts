import { MERGED_SESSIONS_MAX } from "../../contract/merge/merge-verbs.ts";
import { type GatePhase, phases, type SpecTask, type WrittenPhase } from "../../contract/spec/spec.ts";
import { evaluators } from "./evaluators.ts";
import { dataOf, isApproved, type MergeState, openAttempt, type PhaseAttempt, type SpecState, type TaskState } from "./spec-state.ts";
import { taskGraph } from "./task-graph.ts";

type Outcome = NonNullable<SpecState["ended"]>["outcome"];

/** The next steps of a spec. All moves of one decision may be made at the same time. */
export type SpecMove =
  /** Intents, which are recorded before anything is requested. */
  | { kind: "startPhase"; phase: WrittenPhase; attempt: number; key: string; feedback: string[] }
  | { kind: "startTask"; task: SpecTask; attempt: number; key: string; base: string | null }
  | { kind: "startMerge"; step: number; key: string; sessions: string[] }
  | { kind: "conclude"; outcome: Outcome; text: string; session: string | null }
  /** Effects of recorded intents. A run or merge is looked up by its key, and created if it does not exist. */
  | { kind: "runPhase"; attempt: PhaseAttempt }
  | { kind: "runTask"; task: SpecTask; state: TaskState }
  | { kind: "runMerge"; merge: MergeState }
  /** Effects that wait for a run or merge, and judge its result. */
  | { kind: "judgePhase"; attempt: PhaseAttempt; run: string }
  | { kind: "awaitTask"; state: TaskState; run: string }
  | { kind: "awaitMerge"; merge: MergeState; id: string }
  /** Nothing to do until this time, until a person decides, or until the spec is executed again. */
  | { kind: "sleep"; until: string }
  | { kind: "ask"; phase: GatePhase; version: number }
  | { kind: "rest" };

/** Decides from the spec's state, a possible cancellation and the time. A pure function. */
export function decideSpec(state: SpecState, { now, cancelledBy = null }: { now: string; cancelledBy?: string | null }): SpecMove[] {
  if (cancelledBy !== null) return state.ended === null ? cancel(state, cancelledBy) : [{ kind: "rest" }];
  if (!state.isDriven) return [{ kind: "rest" }];
  const open = openMoves(state);
  const attempt = open.find(({ kind }) => kind === "runPhase" || kind === "judgePhase");
  if (attempt !== undefined) return [attempt];
  for (const phase of phases) {
    if (phase === "complete") break;
    const current = state.current[phase];
    if (current === undefined || current.isStale) return [nextAttempt(state, phase, now)];
    if (!isApproved(state, phase)) return [{ kind: "ask", phase: phase as GatePhase, version: current.version }];
  }
  return state.until === "sync" ? [concludeMove("planned", "the plan is written and approved")] : build(state);
}

/** Ends work in progress first. */
function cancel(state: SpecState, by: string): SpecMove[] {
  const open = openMoves(state);
  return open.length > 0 ? open : [concludeMove("cancelled", `cancelled by ${by}`)];
}

/** Returns a move for everything that was started and has no outcome. */
function openMoves(state: SpecState): SpecMove[] {
  const tasks = new Map((dataOf(state).tasks?.tasks ?? []).map((task) => [task.id, task]));
  const attempt = openAttempt(state);
  const moves: SpecMove[] = [];
  if (attempt !== undefined)
    moves.push(attempt.run === null ? { kind: "runPhase", attempt } : { kind: "judgePhase", attempt, run: attempt.run });
  for (const own of state.tasks) {
    const task = tasks.get(own.task);
    if (own.finish !== null || task === undefined) continue;
    if (own.run === null) moves.push({ kind: "runTask", task, state: own });
    else moves.push({ kind: "awaitTask", state: own, run: own.run });
  }
  for (const merge of state.merges) {
    if (merge.session !== undefined) continue;
    moves.push(merge.merge === null ? { kind: "runMerge", merge } : { kind: "awaitMerge", merge, id: merge.merge });
  }
  return moves;
}

function nextAttempt(state: SpecState, phase: WrittenPhase, now: string): SpecMove {
  const own = state.attempts.filter((each) => each.phase === phase);
  const last = own.at(-1);
  const inRound = state.round[phase] ?? 0;
  if (inRound >= evaluators[phase].attempts) return concludeMove("failed", failedPhase(phase, last));
  if (inRound > 0 && last?.retryAt != null && last.retryAt > now) return { kind: "sleep", until: last.retryAt };
  const attempt = own.length + 1;
  return { kind: "startPhase", phase, attempt, key: `${state.spec}/${phase}/${attempt}`, feedback: state.feedback[phase] ?? [] };
}

function failedPhase(phase: WrittenPhase, last: PhaseAttempt | undefined): string {
  const wrong = (last?.judgement?.checks ?? []).filter(({ feedback }) => feedback !== "").map(({ feedback }) => feedback);
  return `${phase} did not pass after ${evaluators[phase].attempts} attempts: ${wrong.join("; ")}`;
}

/**
 * Proceeds wave by wave: runs the tasks of a wave, each in its own session, then merges them; the next wave starts from
 * the result. Without parallelism, each task starts with the previous one's files, and there is nothing to merge.
 */
function build(state: SpecState): SpecMove[] {
  const tasks = dataOf(state).tasks?.tasks ?? [];
  const byId = new Map(tasks.map((task) => [task.id, task]));
  let base: string | null = null;
  const { waves } = taskGraph(tasks);
  for (const wave of state.parallel === 1 ? waves.flat().map((id) => [id]) : waves) {
    const moves = doWave(state, { tasks: wave.flatMap((id) => byId.get(id) ?? []), base });
    if (moves.length > 0) return moves;
    const merged = joinWave(state, wave);
    if ("move" in merged) return [merged.move];
    base = merged.session;
  }
  return [concludeMove("done", "all tasks are done", base)];
}

/** Returns the moves of a wave; empty once all its tasks are done. */
function doWave(state: SpecState, { tasks, base }: { tasks: readonly SpecTask[]; base: string | null }): SpecMove[] {
  const states = new Map(state.tasks.map((each) => [each.task, each]));
  const failed = tasks.filter(({ id }) => (states.get(id)?.finish ?? "done") !== "done");
  const moves = openMoves(state);
  if (failed.length > 0) return moves.length > 0 ? moves : [concludeMove("failed", failedTasks(failed, states))];
  const room = state.parallel - moves.length;
  const waiting = tasks.filter(({ id }) => !states.has(id)).slice(0, Math.max(0, room));
  for (const [index, task] of waiting.entries()) {
    const attempt = state.taskAttempts + index + 1;
    moves.push({ kind: "startTask", task, attempt, key: `${state.spec}/${task.id}/${attempt}`, base });
  }
  return moves;
}

function failedTasks(tasks: readonly SpecTask[], states: ReadonlyMap<string, TaskState>): string {
  return tasks.map(({ id }) => `${id} ended with ${states.get(id)?.finish}: ${states.get(id)?.text.slice(0, 500)}`).join("; ");
}

/** Returns the session with a wave's result, or the next move towards it. */
function joinWave(state: SpecState, wave: readonly string[]): { session: string | null } | { move: SpecMove } {
  let sessions = wave.flatMap((id) => state.tasks.find(({ task }) => task === id)?.session ?? []);
  // If there are more sessions than one merge accepts, we merge them in groups, and then the results.
  while (sessions.length > 1) {
    const results: string[] = [];
    for (const group of groupsOf(sessions)) {
      const merged = mergedOf(state, group);
      if ("move" in merged) return merged;
      results.push(merged.session);
    }
    sessions = results;
  }
  return { session: sessions[0] ?? null };
}

/**
 * Splits the sessions into as few groups as possible, of about the same size, so that no group has only one session.
 */
function groupsOf(sessions: readonly string[]): string[][] {
  const count = Math.ceil(sessions.length / MERGED_SESSIONS_MAX);
  return Array.from({ length: count }, (_, index) =>
    sessions.slice(Math.round((index * sessions.length) / count), Math.round(((index + 1) * sessions.length) / count)),
  );
}

function mergedOf(state: SpecState, sessions: string[]): { session: string } | { move: SpecMove } {
  const merge = state.merges.findLast((each) => each.sessions.join() === sessions.join());
  if (merge === undefined) {
    const step = state.mergeSteps + 1;
    return { move: { kind: "startMerge", step, key: `${state.spec}/merge/${step}`, sessions } };
  }
  if (merge.session === undefined)
    return { move: merge.merge === null ? { kind: "runMerge", merge } : { kind: "awaitMerge", merge, id: merge.merge } };
  return merge.session === null
    ? { move: concludeMove("failed", `the tasks could not be merged: ${merge.text}`) }
    : { session: merge.session };
}

function concludeMove(outcome: Outcome, text: string, session: string | null = null): SpecMove {
  return { kind: "conclude", outcome, text: text.slice(0, 2000), session };
}
