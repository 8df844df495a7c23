import { CaissonError } from "../contract/error/error.ts";
import { ITEMS_MAX, type StepOf, type WorkflowStep } from "../contract/workflow/workflow.ts";
import { unreachable } from "../lib/unreachable.ts";
import { type Evaluate, evaluateCondition, fillIn, UNKNOWN } from "./expression.ts";
import { joinBranches } from "./join.ts";
import { hasBegun, inside, type Place } from "./place.ts";
import type { Json } from "./state.ts";
import { sessionLeftBy, sessionsLeftBy } from "./step-sessions.ts";
import {
  CANCELLED,
  checkSize,
  type Frame,
  failedBy,
  failedWith,
  type Result,
  RUNNING,
  STEPS_STARTED_MAX,
  type StepEffect,
  type Turn,
} from "./turn.ts";

/** Begins a step: emits its start with its input, or its end if it has no external work. */
export function begin(turn: Turn, step: WorkflowStep, at: { path: string; frame: Frame; attempt: number }): void {
  const { path, frame, attempt } = at;
  try {
    if (turn.state.started + turn.events.length > STEPS_STARTED_MAX) {
      throw new CaissonError("too_large", `the workflow has started more than ${STEPS_STARTED_MAX} steps`);
    }
    const evaluate = turn.evaluating(frame);
    if (attempt === 1 && step.when !== undefined && !evaluateCondition(step.when, evaluate)) return void turn.skipped(path);
    if (step.kind === "set") {
      const data = fillIn(step.data, evaluate);
      return void turn.ended(step, path, {
        attempt,
        frame,
        result: { status: "completed", output: null },
        data: checkSize(data, path) as Record<string, Json>,
      });
    }
    if (step.kind === "fail")
      return void turn.ended(step, path, { attempt, frame, result: failedWith("failed", String(fillIn(step.text, evaluate))) });
    turn.started(step, path, { attempt, ...resolveInput(turn, step, frame) });
  } catch (error) {
    // The step begins in the next turn, when the value is known.
    if (error === UNKNOWN) return;
    turn.ended(step, path, { attempt, frame, result: failedBy(error) });
  }
}

function resolveInput(turn: Turn, step: Exclude<WorkflowStep, { kind: "set" | "fail" }>, frame: Frame): { given: Json; due?: string } {
  const evaluate = turn.evaluating(frame);
  const fill = (value: unknown): Json =>
    checkSize(fillIn(JSON.parse(JSON.stringify(value ?? null)) as Json, evaluate), `the input of ${step.name}`);
  switch (step.kind) {
    case "agent":
      return { given: withSession(fill({ task: step.task, input: step.input ?? {} }), sessionGiven(turn, step, frame)) };
    case "command": {
      const input = fill({ argv: step.argv, env: step.env ?? {}, cwd: step.cwd ?? null, ...(step.files && { files: step.files }) });
      return { given: withSession(input, sessionGiven(turn, step, frame)) };
    }
    case "merge":
      return { given: { sessions: mergedSessions(turn, step, frame) } };
    case "workflow":
      return { given: fill({ input: step.input ?? {} }) };
    case "approval":
      return { given: fill({ text: step.text }) };
    case "timer":
      return { given: null, due: dueOf(turn, step, evaluateUntil(step, evaluate)) };
    case "foreach": {
      const items = evaluate(step.in);
      if (!Array.isArray(items)) throw new CaissonError("invalid", `${step.in} is not a list (step ${step.name})`);
      if (items.length > ITEMS_MAX)
        throw new CaissonError("too_large", `${step.name} has ${items.length} items; the maximum is ${ITEMS_MAX}`);
      return { given: checkSize({ items }, `the input of ${step.name}`) };
    }
    case "switch": {
      const index = step.cases.findIndex(({ when }) => evaluateCondition(when, evaluate));
      return { given: { branch: index >= 0 ? index : step.default === undefined ? null : "default" } };
    }
    case "signal":
    case "parallel":
    case "try":
      return { given: null };
    default:
      return unreachable(step);
  }
}

/** Returns the workspace of an earlier step that this step works in or forks. */
function sessionGiven(turn: Turn, { workspace }: StepOf<"agent" | "command">, frame: Frame): Record<string, string> {
  if (workspace === undefined || typeof workspace === "string") return {};
  return "from" in workspace
    ? { session: sessionLeftBy(turn, frame, workspace.from) }
    : { fork: sessionLeftBy(turn, frame, workspace.fork) };
}

const withSession = (input: Json, session: Record<string, string>): Json => ({ ...(input as Record<string, Json>), ...session });

function mergedSessions(turn: Turn, { of, name }: StepOf<"merge">, frame: Frame): string[] {
  const sessions = [...new Set(of.flatMap((each) => sessionsLeftBy(turn, frame, each)))];
  if (sessions.length > 0) return sessions;
  throw new CaissonError("invalid", `nothing to merge for ${name}: ${of.join(", ")} left no workspace`);
}

const evaluateUntil = (step: StepOf<"timer">, evaluate: Evaluate): Json => (step.until === undefined ? null : evaluate(step.until));

function dueOf(turn: Turn, step: StepOf<"timer">, until: Json): string {
  if (step.for !== undefined) return turn.after(step.for);
  if (step.cron !== undefined) return turn.nextMatch(step.cron);
  const time = typeof until === "string" ? Date.parse(until) : Number.NaN;
  if (Number.isNaN(time)) throw new CaissonError("invalid", `${step.until} is not a time (step ${step.name})`);
  return new Date(time).toISOString();
}

/** Advances a started step as far as possible. */
export function advance(turn: Turn, step: WorkflowStep, place: Place): Result {
  const { path, frame, state } = place;
  if (state.status !== "running") return ofEnded(turn, step, place);
  const isCancelling = frame.isCancelling || turn.state.cancelling.has(path);
  if (state.deadline !== null && !isCancelling && step.kind !== "approval") {
    if (turn.hasCome(state.deadline)) {
      turn.events.push({ type: "workflow.cancelling", data: { path, why: "timeout" } });
      return RUNNING;
    }
    turn.waitUntil(state.deadline);
  }
  const result = advanceKind(turn, step, { ...place, frame: { ...frame, isCancelling } });
  if (result.status === "running") return RUNNING;
  const isLate = turn.state.cancelling.get(path) === "timeout" && result.status !== "completed";
  const { attempt } = state;
  turn.ended(step, path, { attempt, frame, result: isLate ? tooLate(path) : result });
  return RUNNING;
}

const tooLate = (path: string) => failedWith("timeout", `${path} timed out`);

function ofEnded(turn: Turn, step: WorkflowStep, { path, frame, state }: Place): Result {
  if (state.status === "completed" || state.status === "skipped") return { status: "completed", output: state.output };
  if (state.status === "cancelled") return turn.state.cancelling.get(path) === "timeout" ? tooLate(path) : CANCELLED;
  if (state.retryAt === null) return { status: "failed", error: state.error ?? { code: "internal", text: "" } };
  if (frame.isCancelling) return CANCELLED;
  if (turn.hasCome(state.retryAt)) begin(turn, step, { path, frame, attempt: state.attempt + 1 });
  else turn.waitUntil(state.retryAt);
  return RUNNING;
}

function advanceKind(turn: Turn, step: WorkflowStep, place: Place): Result {
  const { frame, state } = place;
  switch (step.kind) {
    case "agent":
    case "workflow":
    case "merge":
    case "command":
      turn.effects.push(effectOf(turn, step, place));
      return RUNNING;
    case "timer":
      return advanceTimer(turn, place);
    case "approval":
      return advanceApproval(turn, step, place);
    case "signal": {
      if (frame.isCancelling) return CANCELLED;
      const signal = turn.takeSignal(step.signal);
      if (signal !== null) return { status: "completed", output: signal.data, signal: signal.index };
      turn.signals.push(step.signal);
      return RUNNING;
    }
    case "switch": {
      const { branch } = state.given as { branch: number | "default" | null };
      const steps = branch === null ? undefined : branch === "default" ? step.default : step.cases[branch]?.steps;
      return steps === undefined ? { status: "completed", output: null } : inside(turn, place, { name: String(branch), steps });
    }
    case "parallel":
    case "foreach":
      return joinBranches(turn, step, place);
    case "try":
      return advanceTry(turn, step, place);
    case "set":
    case "fail":
      throw new CaissonError("internal", `${place.path} has no work to advance`);
    default:
      return unreachable(step);
  }
}

function effectOf(turn: Turn, step: StepOf<StepEffect["kind"]>, { path, frame, state }: Place): StepEffect {
  const { attempt, given: input, deadline, child, done } = state;
  const id = `${turn.facts.id}/${path}#${attempt}`;
  const cancel = frame.isCancelling;
  const { source, model, cleanup, root, depth } = turn.state;
  const scope = step.kind === "agent" && child === null && !cancel ? turn.scopeIn(frame) : null;
  const of = { kind: step.kind, path, attempt, given: input, deadline, child, done, step };
  const common = { ...of, scope, source, model, cleanup, root, depth, ...(cancel && { cancel }) };
  // The command has ended; only its workspace remains to be released.
  if (done !== null) return { ...common, id: `${id}:leave`, do: "leave", cancel: false };
  if (step.kind === "command") return { id, do: "command", ...common };
  return child === null ? { id, do: "start", ...common } : { id: `${id}:end`, do: "collect", after: child, ...common };
}

function advanceTimer(turn: Turn, { frame, state }: Place): Result {
  if (frame.isCancelling) return CANCELLED;
  const due = state.due ?? turn.now.toISOString();
  if (turn.hasCome(due)) return { status: "completed", output: { due, lateMs: turn.now.getTime() - Date.parse(due) } };
  turn.waitUntil(due);
  return RUNNING;
}

function advanceApproval(turn: Turn, step: StepOf<"approval">, { frame, state }: Place): Result {
  const applyAnswer = (answer: { approved: boolean; text: string; by: string }): Result => {
    if (answer.approved || step.onDeny === "continue") return { status: "completed", output: answer };
    return failedWith("denied", answer.text === "" ? `${answer.by} denied it` : `${answer.by} denied it: ${answer.text}`);
  };
  if (state.answer !== null) return applyAnswer(state.answer);
  if (frame.isCancelling) return CANCELLED;
  if (state.deadline !== null && turn.hasCome(state.deadline)) {
    if (step.onTimeout === "approve" || step.onTimeout === "deny") {
      return applyAnswer({ approved: step.onTimeout === "approve", text: "there was no answer in time", by: "timeout" });
    }
    return failedWith("timeout", "there was no answer in time");
  }
  if (state.deadline !== null) turn.waitUntil(state.deadline);
  turn.persons.push(String((state.given as { text?: Json } | null)?.text ?? step.text));
  return RUNNING;
}

/** Runs the steps, then `catch` if they failed, then `finally` in any case. */
function advanceTry(turn: Turn, step: StepOf<"try">, place: Place): Result {
  const { isCancelling } = place.frame;
  let result = inside(turn, place, { name: "try", steps: step.steps });
  if (result.status === "running") return RUNNING;
  if (result.status === "failed" && step.catch !== undefined) {
    const part = { name: "catch", steps: step.catch };
    if (!isCancelling || hasBegun(turn, place, part)) result = inside(turn, place, { ...part, names: { error: result.error } });
    if (result.status === "running") return RUNNING;
  }
  if (step.finally === undefined) return result;
  const last = inside(turn, place, { name: "finally", steps: step.finally, isCancelling: false });
  if (last.status === "running") return RUNNING;
  return last.status === "completed" ? result : last;
}
