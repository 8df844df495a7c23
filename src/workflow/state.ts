import type { z } from "zod";
import type { JobEvent } from "../contract/durable/durable-event.ts";
import type { EventFor } from "../contract/event/event-family.ts";
import { type Handlers, handle } from "../contract/event/handlers.ts";
import type { SessionCleanup, WorkspaceSource } from "../contract/session/session.ts";
import type { WorkflowDefinition } from "../contract/workflow/workflow.ts";
import type { OwnWorkflowEvent, StepError, StepStatus, WorkflowSchedule, workflowEvents } from "../contract/workflow/workflow-event.ts";

export type Json = z.core.util.JSONType;

/** The outcome of a step's work. */
export interface StepDone {
  status: "completed" | "failed" | "cancelled";
  output: Json;
  error: StepError | null;
}

/** A step of one instance, in its last attempt. */
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
  /** The outcome of a command whose workspace is not yet released. */
  done: StepDone | null;
  answer: { approved: boolean; text: string; by: string } | null;
  startedAt: string;
  endedAt: string | null;
}

/** The state of a scheduled workflow. */
export interface ScheduleState extends WorkflowSchedule {
  /** The time after which to look for the next match. */
  from: string;
  /** The earliest skipped time, which waits for the end of the last instance. */
  queued: string | null;
  passedOver: number;
  /** Number of events since the last compaction. */
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
  /** When the workspaces of its steps go; null if only the agents say. */
  cleanup: SessionCleanup | null;
  startedAt: string;
  schedule: ScheduleState | null;
  /** Data shared by all steps. */
  data: Record<string, Json>;
  /** Steps by path. Steps within an earlier attempt stay here under that attempt's path. */
  steps: Map<string, StepState>;
  /**
   * Why steps are being ended, by path: one step, `…/*` for everything in a step, or the empty path for the whole
   * workflow.
   */
  cancelling: Map<string, "timeout" | "joined" | "failed">;
  signals: { name: string; key: string | null; data: Json; isTaken: boolean }[];
  /** The total number of steps started. */
  started: number;
  /** Whether a step has run since that may have left a sandbox or a workspace. */
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
    cleanup: null,
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

/** The step name of a schedule's last instance; the attempt is the instance's number. */
export const FIRING = "instance";

const CONTAINERS = new Set(["switch", "parallel", "foreach", "try"]);

/** Applies one event to the state, in place. */
export function applyToWorkflow(state: WorkflowState, event: OwnWorkflowEvent | JobEvent): void {
  if (state.schedule !== null) state.schedule.events += 1;
  handle(handlers, event, state);
}

type EventOf<Type extends OwnWorkflowEvent["type"]> = Extract<OwnWorkflowEvent, { type: Type }>;

const handlers: Handlers<EventFor<typeof workflowEvents, "state">, WorkflowState> = {
  "workflow.defined": applyDefined,
  "workflow.step_started": applyStarted,
  "workflow.summed_up": applySummedUp,
  "workflow.passed_over": ({ data: { due, at, queued } }, { schedule }) => {
    if (schedule === null) return;
    schedule.from = at;
    if (queued) schedule.queued ??= due;
    else schedule.passedOver += 1;
  },
  "workflow.child_started": ({ data: { path, attempt, child } }, { steps }) => {
    const step = steps.get(path);
    if (step?.attempt === attempt) step.child = child;
  },
  "workflow.command_ended": ({ data: { path, attempt, ...done } }, { steps }) => {
    const step = steps.get(path);
    if (step?.attempt === attempt) step.done = done;
  },
  "workflow.step_ended": applyEnded,
  "workflow.cancelling": ({ data: { path, why } }, { cancelling }) => {
    cancelling.set(path, why);
  },
  "workflow.signalled": ({ data: { name, key, data } }, { signals }) => {
    signals.push({ name, key, data, isTaken: false });
  },
  "workflow.answered": ({ data: { path, attempt, approved, text, by } }, { steps }) => {
    const step = steps.get(path);
    if (step?.attempt === attempt) step.answer = { approved, text, by };
  },
  "workflow.retried": ({ at }, state) => applyRetried(state, at),
  "workflow.cleaned": (_, state) => {
    state.needsCleaning = false;
  },
};

function applyDefined({ at, data }: EventOf<"workflow.defined">, state: WorkflowState): void {
  const definition = data.definition as unknown as WorkflowDefinition;
  const { digest, input, source, root, depth, model, schedule } = data;
  const cleanup = data.cleanup ?? definition.cleanup ?? null;
  Object.assign(state, { definition, digest, input, source, root, depth, model, cleanup, startedAt: at });
  state.data = structuredClone(definition.data ?? {});
  if (schedule !== undefined) state.schedule = { ...schedule, from: at, queued: null, passedOver: 0, events: 0 };
}

/** Kinds of steps that leave sandboxes or workspaces, here or in workflows within this one. */
const LEAVING: ReadonlySet<string> = new Set(["command", "agent", "merge", "workflow"]);

function applyStarted(
  { at, data: { path, kind, attempt, given: input, due, deadline } }: EventOf<"workflow.step_started">,
  state: WorkflowState,
): void {
  const rest = { output: null, error: null, retryAt: null, child: null, done: null, answer: null, startedAt: at, endedAt: null };
  state.steps.set(path, { kind, attempt, status: "running", given: input, due, deadline, ...rest });
  state.cancelling.delete(path);
  if (LEAVING.has(kind)) state.needsCleaning = true;
  if (state.schedule !== null) Object.assign(state.schedule, { from: (input as { at: string }).at, queued: null });
  state.started += 1;
}

/** Overwrites earlier state, so the result is the same with and without the events before the compaction. */
function applySummedUp({ data }: EventOf<"workflow.summed_up">, state: WorkflowState): void {
  const { from, queued, started, passedOver, last } = data;
  if (state.schedule !== null) Object.assign(state.schedule, { from, queued, passedOver, events: 0 });
  const nothing = { deadline: null, retryAt: null, done: null, answer: null };
  const steps = last === null ? [] : [[FIRING, { kind: "workflow", ...last, ...nothing }] as const];
  Object.assign(state, { started, steps: new Map(steps), signals: [] });
  state.cancelling.clear();
}

function applyEnded({ data, at }: EventOf<"workflow.step_ended">, state: WorkflowState): void {
  const { path, attempt, status, output, error, retryAt } = data;
  const step = state.steps.get(path) ?? newStep(at);
  Object.assign(step, { attempt, status, output, error, retryAt, done: null, endedAt: at });
  if (!state.steps.has(path)) state.started += 1;
  state.steps.set(path, step);
  for (const [place, value] of Object.entries(data.data)) setAt(state.data, place.split("."), value);
  const signal = data.signal === null ? undefined : state.signals[data.signal];
  if (signal !== undefined) signal.isTaken = true;
}

/** Creates the state of a step that ended without a start event; its input is in the definition. */
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

/** Retries failed steps immediately. Their containers continue, without time limits. */
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
