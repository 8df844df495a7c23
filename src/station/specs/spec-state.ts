import type { EventFor } from "../../contract/event/event-family.ts";
import { type Handlers, handle } from "../../contract/event/handlers.ts";
import type { FinishReason } from "../../contract/outcome.ts";
import type { WorkspaceSource } from "../../contract/session/session.ts";
import { type GatePhase, type Judgement, phases, type SpecData, type SpecPhase, type WrittenPhase } from "../../contract/spec/spec.ts";
import type { SpecEvent, specEvents } from "../../contract/spec/spec-event.ts";
import { LOCAL_OWNER } from "../../contract/token/owner.ts";

export interface PhaseAttempt {
  phase: WrittenPhase;
  /** Counted over the spec's whole life, because it is part of the key of its run. */
  attempt: number;
  /** Attempts since the phase was last requested. */
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

export interface GateVerdict {
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
  /** The session whose files it starts with; null for the project's. */
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
  /** Undefined until the merge has ended. */
  session?: string | null;
  text: string;
}

/** The state of a spec, folded from its log. */
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
  /** Whether an execution was requested and has not finished. */
  isDriven: boolean;
  until: "sync" | "complete";
  versions: WrittenVersion[];
  /** The current version of each phase. */
  current: Partial<Record<WrittenPhase, { version: number; isStale: boolean }>>;
  attempts: PhaseAttempt[];
  /** The feedback for the next attempt of a phase. */
  feedback: Partial<Record<WrittenPhase, string[]>>;
  /** Attempts of each phase since it was last requested. */
  round: Partial<Record<WrittenPhase, number>>;
  verdicts: GateVerdict[];
  /** The last attempt at each of the current tasks. */
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

/** Applies one event to the state, in place. */
export function applyToSpec(state: SpecState, event: SpecEvent): SpecState {
  state.updatedAt = event.at;
  return handle(handlers, event, state) ?? state;
}

type EventOf<Type extends SpecEvent["type"]> = Extract<SpecEvent, { type: Type }>;

const handlers: Handlers<EventFor<typeof specEvents, "state"> | EventOf<"driven.created">, SpecState, SpecState> = {
  "driven.created": ({ at, data: { id, owner = LOCAL_OWNER } }, state) => Object.assign(state, { spec: id, owner, createdAt: at }),
  "spec.proposed": ({ data: { name = null, idea, source, gates, runs, parallel } }, state) =>
    Object.assign(state, { name, idea, source, gates, runs, parallel }),
  "spec.executed": execute,
  "spec.phase_started": applyAttempt,
  "spec.phase_running": applyAttempt,
  "spec.phase_judged": applyAttempt,
  "spec.written": write,
  "spec.approved": decideGate,
  "spec.rejected": decideGate,
  "spec.task_started": applyTask,
  "spec.task_running": applyTask,
  "spec.task_ended": applyTask,
  "spec.merge_started": applyMerge,
  "spec.merge_running": applyMerge,
  "spec.merge_ended": applyMerge,
  "spec.concluded": ({ at, data }, state) => Object.assign(state, { ended: { ...data, at }, isDriven: false }),
};

/** Returns the latest content of each phase, or the content as of a version. */
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

export function verdictOn(state: SpecState, phase: WrittenPhase, version: number | undefined): GateVerdict | undefined {
  return state.verdicts.findLast((verdict) => verdict.phase === phase && verdict.version === version);
}

export const openAttempt = (state: SpecState): PhaseAttempt | undefined => state.attempts.findLast(({ judgement }) => judgement === null);

/** Returns the phase that is being written or waits for approval. */
export function phaseOf(state: SpecState): SpecPhase {
  for (const phase of phases) {
    if (phase === "complete") break;
    const current = state.current[phase];
    if (current === undefined || current.isStale || !isApproved(state, phase)) return phase;
  }
  return "complete";
}

function execute({ data: { from, until, source } }: EventOf<"spec.executed">, state: SpecState): SpecState {
  if (from !== null) for (const phase of phases.slice(phases.indexOf(from))) outdate(state, phase);
  // Executing again means that the failed part is retried.
  state.round = {};
  state.tasks = from === "complete" ? [] : state.tasks.filter(({ finish }) => finish === "done");
  state.merges = from === "complete" ? [] : state.merges.filter(({ session }) => session !== null && session !== undefined);
  return Object.assign(state, { isDriven: true, until, ended: null }, source !== undefined && { source });
}

function outdate(state: SpecState, phase: SpecPhase): void {
  const current = phase === "complete" ? undefined : state.current[phase];
  if (current !== undefined) current.isStale = true;
}

function applyAttempt(event: EventOf<"spec.phase_started" | "spec.phase_running" | "spec.phase_judged">, state: SpecState): SpecState {
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

function write({ at, data: { version, by, content } }: EventOf<"spec.written">, state: SpecState): SpecState {
  const { phase, data } = content;
  state.versions.push({ version, phase, by: by.kind === "run" ? by.run : by.name, at, data });
  state.current[phase] = { version, isStale: false };
  for (const later of phases.slice(phases.indexOf(phase) + 1)) outdate(state, later);
  delete state.round[phase];
  state.feedback[phase] = [];
  // Finished work belonged to the old tasks.
  if (phase === "tasks") Object.assign(state, { tasks: [], merges: [] });
  return state;
}

function decideGate(event: EventOf<"spec.approved" | "spec.rejected">, state: SpecState): SpecState {
  const { phase, version, by, text } = event.data;
  const approved = event.type === "spec.approved";
  state.verdicts.push({ phase, version, by, at: event.at, approved, text });
  if (approved) return state;
  outdate(state, phase);
  delete state.round[phase];
  state.feedback[phase] = [`${by} rejected it: ${text}`];
  return state;
}

function applyTask(event: EventOf<"spec.task_started" | "spec.task_running" | "spec.task_ended">, state: SpecState): SpecState {
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

function applyMerge(event: EventOf<"spec.merge_started" | "spec.merge_running" | "spec.merge_ended">, state: SpecState): SpecState {
  if (event.type === "spec.merge_started") {
    state.mergeSteps = Math.max(state.mergeSteps, event.data.step);
    state.merges.push({ ...event.data, merge: null, text: "" });
    return state;
  }
  const own = state.merges.find(({ step }) => step === event.data.step);
  if (own !== undefined) Object.assign(own, event.data);
  return state;
}
