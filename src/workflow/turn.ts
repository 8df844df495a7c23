import { Cron } from "croner";
import type { JobFacts } from "../contract/durable/durable-job.ts";
import { CaissonError } from "../contract/error/error.ts";
import type { SessionCleanup, WorkspaceSource } from "../contract/session/session.ts";
import type { WorkflowDuration, WorkflowStep } from "../contract/workflow/workflow.ts";
import type { NewWorkflowEvent, StepError, StepStatus } from "../contract/workflow/workflow-event.ts";
import { durationFrom } from "../lib/quantity.ts";
import { type Evaluate, type Scope, UNKNOWN } from "./expression.ts";
import type { KnownValue, WantedValue } from "./expressions/evaluate.ts";
import type { Json, StepDone, StepState, WorkflowState } from "./state.ts";

/** Maximum number of steps that one instance starts, including attempts and items. */
export const STEPS_STARTED_MAX = 50_000;
/** Maximum number of events per turn. Turns are short, so that the rest of the process gets its turn. */
const EVENTS_PER_TURN_MAX = 100;
/** Maximum size of a step's input or output in the log; larger data belongs in a file. */
export const VALUE_BYTES_MAX = 256 * 1024;
const BACKOFF_MS = 1_000;
const DELAY_MS_MAX = 300_000;
const ERROR_TEXT_MAX = 4000;
/**
 * Maximum number of values to request at a time. The events that follow from them are appended before the next values
 * are requested.
 */
const WANTED_MAX = 500;

/** The result of a step or of a list of steps. */
export type Result =
  | { status: "running" }
  | { status: "completed"; output: Json; signal?: number }
  | { status: "failed"; error: StepError }
  | { status: "cancelled" };

export const RUNNING: Result = { status: "running" };
export const CANCELLED: Result = { status: "cancelled" };

/** External work: for a step, or for cleaning up at the end. */
export type WorkflowEffect = StepEffect | CleanEffect;

export interface CleanEffect {
  id: string;
  do: "clean";
  after?: string;
  cancel?: boolean;
  /** Whether the instance ends as completed. */
  hasCompleted: boolean;
  cleanup: SessionCleanup | null;
  /** The stream of the root workflow, whose end is that of the shared workspace. */
  root: string;
}

export interface StepEffect {
  id: string;
  after?: string;
  cancel?: boolean;
  /**
   * `start`: create a run, workflow or merge. `collect`: fetch its result. `command`: run a command. `leave`: release
   * the workspace of an ended command.
   */
  do: "start" | "collect" | "command" | "leave";
  kind: "agent" | "workflow" | "command" | "merge";
  path: string;
  attempt: number;
  given: Json;
  deadline: string | null;
  child: string | null;
  done: StepDone | null;
  step: WorkflowStep;
  /** The variables for an agent's text about earlier work; null for other steps. */
  scope: Scope | null;
  source: WorkspaceSource | null;
  model: string | null;
  /** When workspaces go that the step creates; null if only its agent says. */
  cleanup: SessionCleanup | null;
  /** The root workflow of a child; null if the child is a root itself. */
  root: string | null;
  depth: number;
}

/**
 * The surroundings of a list of steps: the prefix of their paths, the outer frame, and whether they are being ended.
 */
export interface Frame {
  prefix: string;
  steps: readonly WorkflowStep[];
  outer: Frame | null;
  /** Additional variables for expressions, such as an item. */
  names: Scope;
  isCancelling: boolean;
}

/** Collects the result of one decision. */
export class Turn {
  readonly state: WorkflowState;
  readonly facts: Readonly<JobFacts>;
  readonly now: Date;
  readonly events: NewWorkflowEvent[] = [];
  readonly effects: WorkflowEffect[] = [];
  readonly persons: string[] = [];
  readonly signals: string[] = [];
  /** Expressions whose values are needed but unknown. */
  readonly wanted = new Map<string, WantedValue>();
  readonly #known: ReadonlyMap<string, KnownValue>;
  readonly #taken = new Set<number>();
  dueMs = Number.POSITIVE_INFINITY;

  constructor(state: WorkflowState, look: { facts: Readonly<JobFacts>; now: Date; known: ReadonlyMap<string, KnownValue> }) {
    this.state = state;
    this.facts = look.facts;
    this.now = look.now;
    this.#known = look.known;
  }

  /** Returns an evaluator for the expressions of a step in this frame. Unknown values are added to `wanted`. */
  evaluating(frame: Frame): Evaluate {
    let scope: Scope | undefined;
    return (expression) => {
      const key = `${frame.prefix}\0${expression}`;
      const known = this.#known.get(key);
      if (known === undefined) {
        scope ??= this.scopeIn(frame);
        if (this.wanted.size < WANTED_MAX) this.wanted.set(key, { expression, scope });
        throw UNKNOWN;
      }
      if ("error" in known) throw known.error;
      return known.value;
    };
  }

  /** Whether the turn has enough events; the rest is decided in the next turn. */
  get isFull(): boolean {
    return this.events.length >= EVENTS_PER_TURN_MAX;
  }

  hasCome(time: string): boolean {
    return Date.parse(time) <= this.now.getTime();
  }

  waitUntil(time: string): void {
    this.dueMs = Math.min(this.dueMs, Date.parse(time));
  }

  /** Takes the first signal with this name that no step has taken; null if no such signal waits. */
  takeSignal(name: string): { index: number; data: Json } | null {
    const index = this.state.signals.findIndex((signal, at) => signal.name === name && !signal.isTaken && !this.#taken.has(at));
    const found = this.state.signals[index];
    if (found === undefined) return null;
    this.#taken.add(index);
    return { index, data: found.data };
  }

  /** Returns the variables for expressions of a step in this frame. */
  scopeIn(frame: Frame): Scope {
    const { state, facts } = this;
    const steps: Record<string, Json> = {};
    const names: Record<string, Json> = {};
    for (const each of outermostFirst(frame)) {
      Object.assign(names, each.names);
      for (const { name } of each.steps) {
        const step = state.steps.get(each.prefix + name);
        if (step === undefined || step.status === "running") continue;
        steps[name] = { status: step.status, output: step.output, error: step.error, child: step.child };
      }
    }
    const instance = { id: facts.id, parent: facts.parent, root: state.root };
    return { input: state.input, data: state.data, steps, instance, now: this.now.toISOString(), ...names };
  }

  started(
    step: WorkflowStep,
    path: string,
    { attempt, given: input, due = null }: { attempt: number; given: Json; due?: string | null },
  ): void {
    const deadline = step.timeout === undefined ? null : this.after(step.timeout);
    this.events.push({ type: "workflow.step_started", data: { path, kind: step.kind, attempt, given: input, due, deadline } });
  }

  ended(
    step: WorkflowStep,
    path: string,
    {
      attempt,
      result,
      frame,
      data = {},
    }: { attempt: number; result: Exclude<Result, { status: "running" }>; frame: Frame; data?: Record<string, Json> },
  ): void {
    const output = result.status === "completed" ? result.output : null;
    const error = result.status === "failed" ? result.error : null;
    this.events.push({
      type: "workflow.step_ended",
      data: {
        path,
        attempt,
        status: result.status,
        output,
        error,
        retryAt: error === null || frame.isCancelling ? null : retryAt(step, { attempt, code: error.code, now: this.now }),
        data: { ...(result.status === "completed" && step.result !== undefined && { [step.result]: output }), ...data },
        signal: (result.status === "completed" ? result.signal : undefined) ?? null,
      },
    });
  }

  skipped(path: string): void {
    const nothing = { output: null, error: null, retryAt: null, data: {}, signal: null };
    this.events.push({ type: "workflow.step_ended", data: { path, attempt: 1, status: "skipped" satisfies StepStatus, ...nothing } });
  }

  after(duration: WorkflowDuration): string {
    return new Date(this.now.getTime() + (durationFrom(String(duration)) ?? 0)).toISOString();
  }

  nextMatch(cron: string): string {
    const next = new Cron(cron, { timezone: "UTC" }).nextRun(this.now);
    if (next === null) throw new CaissonError("invalid", `the schedule ${JSON.stringify(cron)} never matches`);
    return next.toISOString();
  }
}

/** Returns when to retry a failed step; null for never. */
export function retryAt({ retry }: WorkflowStep, { attempt, code, now }: { attempt: number; code: string; now: Date }): string | null {
  if (retry === undefined || attempt >= retry.attempts || (retry.on !== undefined && !retry.on.includes(code))) return null;
  const first = retry.backoff === undefined ? BACKOFF_MS : (durationFrom(String(retry.backoff)) ?? BACKOFF_MS);
  const most = retry.maxDelay === undefined ? DELAY_MS_MAX : (durationFrom(String(retry.maxDelay)) ?? DELAY_MS_MAX);
  return new Date(now.getTime() + Math.min(first * 2 ** (attempt - 1), most)).toISOString();
}

function outermostFirst(frame: Frame): Frame[] {
  const frames: Frame[] = [];
  for (let each: Frame | null = frame; each !== null; each = each.outer) frames.unshift(each);
  return frames;
}

/** Returns the path prefix within a step. It differs between attempts. */
export function prefixIn(path: string, { attempt }: Pick<StepState, "attempt">): string {
  return attempt === 1 ? `${path}/` : `${path}~${attempt}/`;
}

export const failedWith = (code: string, text: string): Extract<Result, { status: "failed" }> => ({
  status: "failed",
  error: { code, text: text.slice(0, ERROR_TEXT_MAX) },
});

/** Converts the failure of an expression to the failure of its step. */
export function failedBy(error: unknown): Extract<Result, { status: "failed" }> {
  if (error instanceof CaissonError) return failedWith(error.code, error.hint === undefined ? error.message : error.sentences);
  throw error;
}

/** Throws `too_large` for a value that is too large for the log. */
export function checkSize<Value extends Json>(value: Value, what: string): Value {
  const bytes = Buffer.byteLength(JSON.stringify(value) ?? "");
  if (bytes <= VALUE_BYTES_MAX) return value;
  throw new CaissonError("too_large", `${what} has ${bytes} bytes; the maximum is ${VALUE_BYTES_MAX}`);
}
