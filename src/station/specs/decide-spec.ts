import { type GatePhase, phases, type SpecTask, type WrittenPhase } from "../../contract/spec.ts";
import { evaluators } from "./evaluators.ts";
import { dataOf, isApproved, type MergeState, openAttempt, type PhaseAttempt, type SpecState, type TaskState } from "./spec-state.ts";
import { taskGraph } from "./task-graph.ts";

/** What is to be done next for a spec. Moves of one answer may be made at the same time. */
export type SpecMove =
  /** Intents: to be put down before anything is asked for. */
  | { kind: "startPhase"; phase: WrittenPhase; attempt: number; key: string; feedback: string[] }
  | { kind: "startTask"; task: SpecTask; attempt: number; key: string }
  | { kind: "startMerge"; step: number; key: string; sessions: string[] }
  /** Effects of intents that are put down: a run or a merge is looked for by its key, and made where it is not there. */
  | { kind: "runPhase"; attempt: PhaseAttempt }
  | { kind: "runTask"; task: SpecTask; state: TaskState; session: string | null }
  | { kind: "runMerge"; merge: MergeState }
  /** What was asked for is waited for, and judged. */
  | { kind: "judgePhase"; attempt: PhaseAttempt; run: string }
  | { kind: "awaitTask"; state: TaskState; run: string }
  | { kind: "awaitMerge"; merge: MergeState; id: string }
  /** Nothing to do until then, or until a person has decided. */
  | { kind: "sleep"; until: string }
  | { kind: "ask"; phase: GatePhase; version: number }
  | { kind: "end"; outcome: "done" | "planned" | "failed" | "cancelled"; text: string; session: string | null };

/** Pure: from what a spec has come to, and the time. Empty for one that nobody drives. */
export function decideSpec(state: SpecState, now: string): SpecMove[] {
  if (!state.isDriven) return [];
  if (state.cancelledBy !== null) return [{ kind: "end", outcome: "cancelled", text: `cancelled by ${state.cancelledBy}`, session: null }];
  const open = openAttempt(state);
  if (open !== undefined)
    return [open.run === null ? { kind: "runPhase", attempt: open } : { kind: "judgePhase", attempt: open, run: open.run }];
  for (const phase of phases) {
    if (phase === "complete") break;
    const current = state.current[phase];
    if (current === undefined || current.isStale) return [nextAttempt(state, phase, now)];
    if (!isApproved(state, phase)) return [{ kind: "ask", phase: phase as GatePhase, version: current.version }];
  }
  return state.until === "sync" ? [ended("planned", "the plan is written and agreed to")] : build(state);
}

/** Open runs of a spec: those that are to be stopped when it is cancelled. */
export function openRuns(state: SpecState): string[] {
  const runs = [openAttempt(state)?.run, ...state.tasks.filter(({ finish }) => finish === null).map(({ run }) => run)];
  return runs.filter((run) => run !== null && run !== undefined);
}

function nextAttempt(state: SpecState, phase: WrittenPhase, now: string): SpecMove {
  const own = state.attempts.filter((each) => each.phase === phase);
  const last = own.at(-1);
  const inRound = state.round[phase] ?? 0;
  if (inRound >= evaluators[phase].attempts) return ended("failed", failedPhase(phase, last));
  if (inRound > 0 && last?.retryAt != null && last.retryAt > now) return { kind: "sleep", until: last.retryAt };
  const attempt = own.length + 1;
  return { kind: "startPhase", phase, attempt, key: `${state.spec}/${phase}/${attempt}`, feedback: state.feedback[phase] ?? [] };
}

function failedPhase(phase: WrittenPhase, last: PhaseAttempt | undefined): string {
  const wrong = (last?.judgement?.checks ?? []).filter(({ feedback }) => feedback !== "").map(({ feedback }) => feedback);
  return `${phase} did not pass after ${evaluators[phase].attempts} attempts: ${wrong.join("; ")}`.slice(0, 4000);
}

/** Wave by wave: the tasks of one, each on a session of its own, then their merge, on which the next wave begins. */
function build(state: SpecState): SpecMove[] {
  const tasks = dataOf(state).tasks?.tasks ?? [];
  const byId = new Map(tasks.map((task) => [task.id, task]));
  let base: string | null = null;
  for (const wave of taskGraph(tasks).waves) {
    const moves = doWave(state, { tasks: wave.flatMap((id) => byId.get(id) ?? []), base });
    if (moves.length > 0) return moves;
    const merged = joined(state, { wave, base });
    if ("move" in merged) return [merged.move];
    base = merged.session;
  }
  return [ended("done", "all tasks are done and merged", base)];
}

/** Empty once all of them are done. */
function doWave(state: SpecState, { tasks, base }: { tasks: readonly SpecTask[]; base: string | null }): SpecMove[] {
  const states = new Map(state.tasks.map((each) => [each.task, each]));
  const failed = tasks.filter(({ id }) => (states.get(id)?.finish ?? "done") !== "done");
  const moves: SpecMove[] = [];
  for (const task of tasks) {
    const own = states.get(task.id);
    if (own === undefined || own.finish !== null) continue;
    if (own.run === null) moves.push({ kind: "runTask", task, state: own, session: base });
    else moves.push({ kind: "awaitTask", state: own, run: own.run });
  }
  if (failed.length > 0) return moves.length > 0 ? moves : [ended("failed", failedTasks(failed, states))];
  // Those that follow a merge work in its session, one after the other.
  const room = (base === null ? state.parallel : 1) - moves.length;
  const waiting = tasks.filter(({ id }) => !states.has(id)).slice(0, Math.max(0, room));
  for (const [index, task] of waiting.entries()) {
    const attempt = state.taskAttempts + index + 1;
    moves.push({ kind: "startTask", task, attempt, key: `${state.spec}/${task.id}/${attempt}` });
  }
  return moves;
}

function failedTasks(tasks: readonly SpecTask[], states: ReadonlyMap<string, TaskState>): string {
  return tasks
    .map(({ id }) => `${id} ended with ${states.get(id)?.finish}: ${states.get(id)?.text.slice(0, 500)}`)
    .join("; ")
    .slice(0, 4000);
}

/** The session that holds what a wave came to, or what is missing to have one. */
function joined(
  state: SpecState,
  { wave, base }: { wave: readonly string[]; base: string | null },
): { session: string | null } | { move: SpecMove } {
  if (base !== null) return { session: base };
  const sessions = wave.flatMap((id) => state.tasks.find(({ task }) => task === id)?.session ?? []);
  if (sessions.length <= 1) return { session: sessions[0] ?? null };
  const merge = state.merges.findLast((each) => each.sessions.join() === sessions.join());
  if (merge === undefined) {
    const step = state.mergeSteps + 1;
    return { move: { kind: "startMerge", step, key: `${state.spec}/merge/${step}`, sessions } };
  }
  if (merge.session === undefined)
    return { move: merge.merge === null ? { kind: "runMerge", merge } : { kind: "awaitMerge", merge, id: merge.merge } };
  return merge.session === null ? { move: ended("failed", `the tasks could not be merged: ${merge.text}`) } : { session: merge.session };
}

function ended(outcome: "done" | "planned" | "failed", text: string, session: string | null = null): SpecMove {
  return { kind: "end", outcome, text, session };
}
