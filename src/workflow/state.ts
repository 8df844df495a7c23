import type { z } from "zod";
import type { DrivenEvent } from "../contract/driven-event.ts";
import { isDrivenEvent } from "../contract/is-driven-event.ts";
import type { WorkspaceSource } from "../contract/session.ts";
import type { WorkflowDefinition } from "../contract/workflow.ts";
import type { OwnWorkflowEvent, StepError, StepStatus, WorkflowSchedule } from "../contract/workflow-event.ts";
import { unreachable } from "../lib/unreachable.ts";

export type Json = z.core.util.JSONType;

/** What the work of a step came to. */
export interface StepDone {
  status: "completed" | "failed" | "cancelled";
  output: Json;
  error: StepError | null;
}

/** A step of one instance, as its last attempt is. */
export interface StepState {
  kind: string;
  attempt: number;
  status: "running" | StepStatus;
  given: Json;
  output: Json;
  error: StepError | null;
  due: string | null;
  deadline: string | null;
  retryAt: string | null;
  child: string | null;
  /** Of a step that has yet to leave the workspace that it worked in. */
  done: StepDone | null;
  answer: { approved: boolean; text: string; by: string } | null;
  startedAt: string;
  endedAt: string | null;
}

/** Of a workflow that starts instances of itself. */
export interface ScheduleState extends WorkflowSchedule {
  /** After which time the next one is looked for. */
  from: string;
  /** The first time that waits for the end of the last instance. */
  queued: string | null;
  passedOver: number;
  /** How many events there are since the whole was told last. */
  events: number;
}

export interface WorkflowState {
  definition: WorkflowDefinition | null;
  digest: string;
  input: Json;
  source: WorkspaceSource | null;
  root: string;
  depth: number;
  model: string | null;
  startedAt: string;
  schedule: ScheduleState | null;
  /** Shared by all steps. */
  data: Record<string, Json>;
  /** By their paths. Those of earlier attempts of what they are in stay here, under that attempt's path. */
  steps: Map<string, StepState>;
  /** What is to be ended, by its path: a step, `…/*` for all that is in one, or the whole for the empty path. */
  cancelling: Map<string, "timeout" | "joined" | "failed">;
  signals: { name: string; key: string | null; data: Json; isTaken: boolean }[];
  /** How many steps were started in all. */
  started: number;
  /** Whether a command was run since its sandbox was last removed. */
  needsCleaning: boolean;
}

export function emptyWorkflow(): WorkflowState {
  return {
    definition: null,
    digest: "",
    input: null,
    source: null,
    root: "",
    depth: 0,
    model: null,
    startedAt: "",
    schedule: null,
    data: {},
    steps: new Map(),
    cancelling: new Map(),
    signals: [],
    started: 0,
    needsCleaning: false,
  };
}

/** Where the last instance of a schedule stands among its steps; the attempt is its number. */
export const FIRING = "instance";

const CONTAINERS = new Set(["switch", "parallel", "foreach", "try"]);

/** Folds one event, in place. */
export function applyToWorkflow(state: WorkflowState, event: OwnWorkflowEvent | DrivenEvent): void {
  if (state.schedule !== null) state.schedule.events += 1;
  if (isDrivenEvent(event)) return;
  switch (event.type) {
    case "workflow.defined": {
      const definition = event.data.definition as unknown as WorkflowDefinition;
      const { digest, input, source, root, depth, model } = event.data;
      Object.assign(state, { definition, digest, input, source, root, depth, model, startedAt: event.at });
      state.data = structuredClone(definition.data ?? {});
      const { schedule } = event.data;
      if (schedule !== undefined) state.schedule = { ...schedule, from: event.at, queued: null, passedOver: 0, events: 0 };
      return;
    }
    case "workflow.step_started": {
      const { path, kind, attempt, given, due, deadline } = event.data;
      const rest = { output: null, error: null, retryAt: null, child: null, done: null, answer: null, startedAt: event.at, endedAt: null };
      state.steps.set(path, { kind, attempt, status: "running", given, due, deadline, ...rest });
      state.cancelling.delete(path);
      if (kind === "command") state.needsCleaning = true;
      if (state.schedule !== null) Object.assign(state.schedule, { from: (given as { at: string }).at, queued: null });
      state.started += 1;
      return;
    }
    case "workflow.summed_up":
      applySummedUp(state, event);
      return;
    case "workflow.passed_over": {
      const { due, at, queued } = event.data;
      if (state.schedule === null) return;
      state.schedule.from = at;
      if (queued) state.schedule.queued ??= due;
      else state.schedule.passedOver += 1;
      return;
    }
    case "workflow.child_started": {
      const step = state.steps.get(event.data.path);
      if (step?.attempt === event.data.attempt) step.child = event.data.child;
      return;
    }
    case "workflow.command_ended": {
      const { path, attempt, ...done } = event.data;
      const step = state.steps.get(path);
      if (step?.attempt === attempt) step.done = done;
      return;
    }
    case "workflow.step_ended":
      applyEnded(state, event);
      return;
    case "workflow.cancelling":
      state.cancelling.set(event.data.path, event.data.why);
      return;
    case "workflow.signalled": {
      const { name, key, data } = event.data;
      state.signals.push({ name, key, data, isTaken: false });
      return;
    }
    case "workflow.answered": {
      const step = state.steps.get(event.data.path);
      const { approved, text, by, attempt } = event.data;
      if (step?.attempt === attempt) step.answer = { approved, text, by };
      return;
    }
    case "workflow.retried":
      applyRetried(state, event.at);
      return;
    case "workflow.cleaned":
      state.needsCleaning = false;
      return;
    default:
      unreachable(event);
  }
}

/** Whatever was known before: it is the same for those who have the old events and those who have not. */
function applySummedUp(state: WorkflowState, { data }: Extract<OwnWorkflowEvent, { type: "workflow.summed_up" }>): void {
  const { from, queued, started, passedOver, last } = data;
  if (state.schedule !== null) Object.assign(state.schedule, { from, queued, passedOver, events: 0 });
  const nothing = { deadline: null, retryAt: null, done: null, answer: null };
  const steps = last === null ? [] : [[FIRING, { kind: "workflow", ...last, ...nothing }] as const];
  Object.assign(state, { started, steps: new Map(steps), signals: [] });
  state.cancelling.clear();
}

function applyEnded(state: WorkflowState, { data, at }: Extract<OwnWorkflowEvent, { type: "workflow.step_ended" }>): void {
  const { path, attempt, status, output, error, retryAt } = data;
  const step = state.steps.get(path) ?? newStep(at);
  Object.assign(step, { attempt, status, output, error, retryAt, done: null, endedAt: at });
  if (!state.steps.has(path)) state.started += 1;
  state.steps.set(path, step);
  for (const [place, value] of Object.entries(data.data)) setAt(state.data, place.split("."), value);
  const signal = data.signal === null ? undefined : state.signals[data.signal];
  if (signal !== undefined) signal.isTaken = true;
}

/** Of a step that ended at once: what it was given is in the definition. */
function newStep(at: string): StepState {
  const nothing = {
    given: null,
    output: null,
    error: null,
    due: null,
    deadline: null,
    retryAt: null,
    child: null,
    done: null,
    answer: null,
  };
  return { kind: "step", attempt: 1, status: "running", ...nothing, startedAt: at, endedAt: null };
}

/** What failed is tried again at once; what is around it goes on, without the time bounds that it had. */
function applyRetried(state: WorkflowState, at: string): void {
  state.cancelling.clear();
  for (const step of state.steps.values()) {
    step.deadline = null;
    if (step.status !== "failed" && step.status !== "cancelled") continue;
    if (CONTAINERS.has(step.kind)) Object.assign(step, { status: "running", output: null, error: null, endedAt: null });
    else Object.assign(step, { status: "failed", retryAt: at });
  }
}

function setAt(data: Record<string, Json>, names: readonly string[], value: Json): void {
  const [first = "", ...rest] = names;
  if (rest.length === 0) {
    Object.defineProperty(data, first, { value, writable: true, enumerable: true, configurable: true });
    return;
  }
  const inner = Object.hasOwn(data, first) ? data[first] : undefined;
  const next = inner !== null && typeof inner === "object" && !Array.isArray(inner) ? (inner as Record<string, Json>) : {};
  Object.defineProperty(data, first, { value: next, writable: true, enumerable: true, configurable: true });
  setAt(next, rest, value);
}
