import { LOCAL_OWNER } from "../../contract/owner.ts";
import type { FinishReason } from "../../contract/run.ts";
import type { WorkspaceSource } from "../../contract/session.ts";
import { type GatePhase, type Judgement, phases, type SpecData, type SpecPhase, type WrittenPhase } from "../../contract/spec.ts";
import type { SpecEvent } from "../../contract/spec-event.ts";
import { unreachable } from "../../lib/unreachable.ts";

export interface PhaseAttempt {
  phase: WrittenPhase;
  /** Counted over the spec's whole life: it is part of what finds its run again. */
  attempt: number;
  /** Attempts since somebody asked for the phase. */
  inRound: number;
  key: string;
  feedback: string[];
  run: string | null;
  judgement: Judgement | null;
  retryAt: string | null;
  startedAt: string;
  endedAt: string | null;
}

export interface WrittenVersion {
  version: number;
  phase: WrittenPhase;
  by: string;
  at: string;
  data: SpecData[WrittenPhase];
}

export interface Verdict {
  phase: GatePhase;
  version: number;
  by: string;
  at: string;
  approved: boolean;
  text: string;
}

export interface TaskState {
  task: string;
  attempt: number;
  key: string;
  /** The session with whose files it begins; null: the project's. */
  base: string | null;
  run: string | null;
  session: string | null;
  finish: FinishReason | null;
  text: string;
  changed: string[];
  changedMore: boolean;
}

export interface MergeState {
  step: number;
  key: string;
  sessions: string[];
  merge: string | null;
  /** Undefined until it has ended. */
  session?: string | null;
  text: string;
}

/** What a spec has come to: a fold of its log. */
export interface SpecState {
  spec: string;
  name: string | null;
  owner: string;
  idea: string;
  source: WorkspaceSource | null;
  gates: GatePhase[];
  runs: unknown;
  parallel: number;
  createdAt: string;
  updatedAt: string;
  /** Whether somebody asked for it to be driven, and it has come to no conclusion since. */
  isDriven: boolean;
  until: "sync" | "complete";
  versions: WrittenVersion[];
  /** The version of each phase that holds. */
  current: Partial<Record<WrittenPhase, { version: number; isStale: boolean }>>;
  attempts: PhaseAttempt[];
  /** What the next attempt of a phase is told. */
  feedback: Partial<Record<WrittenPhase, string[]>>;
  /** Attempts of each phase since somebody asked for it. */
  round: Partial<Record<WrittenPhase, number>>;
  verdicts: Verdict[];
  /** The last attempt of each task of the tasks that hold now. */
  tasks: TaskState[];
  merges: MergeState[];
  /** Counted over the spec's whole life. */
  taskAttempts: number;
  mergeSteps: number;
  ended: { outcome: "done" | "planned" | "failed" | "cancelled"; text: string; session: string | null; at: string } | null;
}

export function emptySpecState(): SpecState {
  return {
    ...{
      spec: "",
      name: null,
      owner: LOCAL_OWNER,
      idea: "",
      source: null,
      gates: [],
      runs: {},
      parallel: 1,
      createdAt: "",
      updatedAt: "",
    },
    ...{ isDriven: false, until: "complete", versions: [], current: {}, attempts: [], feedback: {}, round: {}, verdicts: [] },
    ...{ tasks: [], merges: [], taskAttempts: 0, mergeSteps: 0, ended: null },
  };
}

/** Adds one event; the state is changed in place. */
export function applyToSpec(state: SpecState, event: SpecEvent): SpecState {
  state.updatedAt = event.at;
  switch (event.type) {
    case "driven.created": {
      const { id, owner } = event.data;
      return Object.assign(state, { spec: id, owner: owner ?? LOCAL_OWNER, createdAt: event.at });
    }
    case "spec.proposed": {
      const { name, idea, source, gates, runs, parallel } = event.data;
      return Object.assign(state, { name: name ?? null, idea, source, gates, runs, parallel });
    }
    case "spec.executed":
      return execute(state, event.data);
    case "spec.phase_started":
    case "spec.phase_running":
    case "spec.phase_judged":
      return applyAttempt(state, event);
    case "spec.written":
      return write(state, event);
    case "spec.approved":
    case "spec.rejected":
      return decideGate(state, event);
    case "spec.task_started":
    case "spec.task_running":
    case "spec.task_ended":
      return applyTask(state, event);
    case "spec.merge_started":
    case "spec.merge_running":
    case "spec.merge_ended":
      return applyMerge(state, event);
    case "spec.concluded":
      return Object.assign(state, { ended: { ...event.data, at: event.at }, isDriven: false });
    // What they say is in the facts that all driven things share.
    case "driven.waiting":
    case "driven.paused":
    case "driven.continued":
    case "driven.cancel_requested":
    case "driven.ended":
    case "driven.reopened":
      return state;
    default:
      return unreachable(event);
  }
}

/** What is written, with the last version of each phase, or as it was at a version. */
export function dataOf(state: SpecState, atVersion = Number.POSITIVE_INFINITY): SpecData {
  const data: Record<string, unknown> = {};
  for (const { version, phase, data: written } of state.versions) if (version <= atVersion) data[phase] = written;
  return data as SpecData;
}

export const lastVersion = (state: SpecState): number => state.versions.at(-1)?.version ?? 0;

export function isApproved(state: SpecState, phase: WrittenPhase): boolean {
  const version = state.current[phase]?.version;
  return !state.gates.includes(phase as GatePhase) || verdictOn(state, phase, version)?.approved === true;
}

export function verdictOn(state: SpecState, phase: WrittenPhase, version: number | undefined): Verdict | undefined {
  return state.verdicts.findLast((verdict) => verdict.phase === phase && verdict.version === version);
}

export const openAttempt = (state: SpecState): PhaseAttempt | undefined => state.attempts.findLast(({ judgement }) => judgement === null);

/** The phase that is worked on, or waited for. */
export function phaseOf(state: SpecState): SpecPhase {
  for (const phase of phases) {
    if (phase === "complete") break;
    const current = state.current[phase];
    if (current === undefined || current.isStale || !isApproved(state, phase)) return phase;
  }
  return "complete";
}

function execute(state: SpecState, { from, until, source }: Extract<SpecEvent, { type: "spec.executed" }>["data"]): SpecState {
  if (from !== null) for (const phase of phases.slice(phases.indexOf(from))) outdate(state, phase);
  // Whoever asks for it again wants what failed tried anew.
  state.round = {};
  state.tasks = from === "complete" ? [] : state.tasks.filter(({ finish }) => finish === "done");
  state.merges = from === "complete" ? [] : state.merges.filter(({ session }) => session !== null && session !== undefined);
  return Object.assign(state, { isDriven: true, until, ended: null }, source !== undefined && { source });
}

function outdate(state: SpecState, phase: SpecPhase): void {
  const current = phase === "complete" ? undefined : state.current[phase];
  if (current !== undefined) current.isStale = true;
}

type AttemptEvent = Extract<SpecEvent, { type: "spec.phase_started" | "spec.phase_running" | "spec.phase_judged" }>;

function applyAttempt(state: SpecState, event: AttemptEvent): SpecState {
  if (event.type === "spec.phase_started") {
    const { phase, attempt, key, feedback } = event.data;
    const inRound = (state.round[phase] ?? 0) + 1;
    state.round[phase] = inRound;
    state.attempts.push({
      ...{ phase, attempt, inRound, key, feedback, run: null, judgement: null, retryAt: null, startedAt: event.at, endedAt: null },
    });
    return state;
  }
  const { phase, attempt, run } = event.data;
  const own = state.attempts.findLast((each) => each.phase === phase && each.attempt === attempt);
  if (own === undefined) return state;
  if (event.type === "spec.phase_running") {
    own.run = run;
    return state;
  }
  const { judgement, retryAt } = event.data;
  Object.assign(own, { judgement, retryAt, endedAt: event.at });
  state.feedback[phase] = judgement.passed
    ? []
    : judgement.checks.filter(({ feedback }) => feedback !== "").map(({ feedback }) => feedback);
  if (judgement.passed) delete state.round[phase];
  return state;
}

function write(state: SpecState, { at, data: { version, by, content } }: Extract<SpecEvent, { type: "spec.written" }>): SpecState {
  const { phase, data } = content;
  state.versions.push({ version, phase, by: by.kind === "run" ? by.run : by.name, at, data });
  state.current[phase] = { version, isStale: false };
  for (const later of phases.slice(phases.indexOf(phase) + 1)) outdate(state, later);
  delete state.round[phase];
  state.feedback[phase] = [];
  // What was done was done for other tasks.
  if (phase === "tasks") Object.assign(state, { tasks: [], merges: [] });
  return state;
}

function decideGate(state: SpecState, event: Extract<SpecEvent, { type: "spec.approved" | "spec.rejected" }>): SpecState {
  const { phase, version, by, text } = event.data;
  const approved = event.type === "spec.approved";
  state.verdicts.push({ phase, version, by, at: event.at, approved, text });
  if (approved) return state;
  outdate(state, phase);
  delete state.round[phase];
  state.feedback[phase] = [`${by} did not agree: ${text}`];
  return state;
}

function applyTask(
  state: SpecState,
  event: Extract<SpecEvent, { type: "spec.task_started" | "spec.task_running" | "spec.task_ended" }>,
): SpecState {
  if (event.type === "spec.task_started") {
    const { task, attempt, key, base } = event.data;
    state.taskAttempts = Math.max(state.taskAttempts, attempt);
    state.tasks = state.tasks.filter((each) => each.task !== task);
    state.tasks.push({ task, attempt, key, base, run: null, session: null, finish: null, text: "", changed: [], changedMore: false });
    return state;
  }
  const own = state.tasks.find(({ task }) => task === event.data.task);
  if (own !== undefined) Object.assign(own, event.data);
  return state;
}

function applyMerge(
  state: SpecState,
  event: Extract<SpecEvent, { type: "spec.merge_started" | "spec.merge_running" | "spec.merge_ended" }>,
): SpecState {
  if (event.type === "spec.merge_started") {
    state.mergeSteps = Math.max(state.mergeSteps, event.data.step);
    state.merges.push({ ...event.data, merge: null, text: "" });
    return state;
  }
  const own = state.merges.find(({ step }) => step === event.data.step);
  if (own !== undefined) Object.assign(own, event.data);
  return state;
}
