import type { JobFinish } from "../contract/durable/durable-event.ts";
import type { JobFacts } from "../contract/durable/durable-job.ts";
import { CaissonError } from "../contract/error/error.ts";
import type { WorkflowDefinition, WorkflowStep } from "../contract/workflow/workflow.ts";
import type { NewWorkflowEvent } from "../contract/workflow/workflow-event.ts";
import { durationFrom } from "../lib/quantity.ts";
import { advance, begin } from "./advance.ts";
import { checkAgainst } from "./check-value.ts";
import { fillIn, UNKNOWN } from "./expression.ts";
import type { Evaluator, KnownValue, WantedValue } from "./expressions/evaluate.ts";
import { decideSchedule } from "./schedule.ts";
import type { Json, WorkflowState } from "./state.ts";
import { CANCELLED, type CleanEffect, checkSize, type Frame, type Result, RUNNING, Turn, type WorkflowEffect } from "./turn.ts";

/** The maximum for one append, with room for the driver's own events. */
const EVENTS_MAX = 500;

export type WorkflowDecision =
  | { append: readonly NewWorkflowEvent[]; isRetelling?: boolean }
  | { effects: readonly WorkflowEffect[]; waits: { due?: Date; person?: string; signal?: string } }
  | WorkflowEnd;

interface WorkflowEnd {
  end: { finish: JobFinish; text: string | null };
}

interface Look {
  facts: Readonly<JobFacts>;
  now: Date;
  /** Runs part of the decision as the instance's turn; see `duringTurn`. */
  during?: <Result>(work: () => Result) => Result;
}

/** Expressions whose values the decision needs. */
interface Wants {
  wants: ReadonlyMap<string, WantedValue>;
}

/**
 * Decides what an instance does next. Every process that folds the same events makes the same decision. Expressions are
 * evaluated elsewhere, within bounds: the decision goes as far as it can without their values, and is repeated when
 * they are known.
 */
export async function decideWorkflow(state: WorkflowState, look: Look, evaluator: Evaluator): Promise<WorkflowDecision> {
  const { during = (work) => work() } = look;
  return await knowing(look.facts, evaluator, (known) => during(() => decideWith(state, { ...look, known })));
}

async function knowing<Outcome extends object>(
  { owner }: Readonly<JobFacts>,
  evaluator: Evaluator,
  decide: (known: ReadonlyMap<string, KnownValue>) => Outcome | Wants,
): Promise<Outcome> {
  const known = new Map<string, KnownValue>();
  for (;;) {
    const outcome = decide(known);
    if (!("wants" in outcome)) return outcome;
    for (const [key, wanted] of outcome.wants) known.set(key, await evaluator(wanted, { owner }));
  }
}

function decideWith(state: WorkflowState, look: Look & { known: ReadonlyMap<string, KnownValue> }): WorkflowDecision | Wants {
  const { definition } = state;
  if (definition === null) throw new CaissonError("internal", `the workflow ${look.facts.id} has no definition`);
  if (state.schedule !== null) return decideSchedule({ ...state, schedule: state.schedule }, look);
  const turn = new Turn(state, look);
  const deadline = deadlineOf(state, definition);
  if (deadline !== null && !state.cancelling.has("")) {
    if (turn.hasCome(deadline)) return { append: [{ type: "workflow.cancelling", data: { path: "", why: "timeout" } }] };
    turn.waitUntil(deadline);
  }
  const result = runSequence(turn, rootFrame(state, definition, look.facts));
  if (turn.events.length > 0) return { append: turn.events.slice(0, EVENTS_MAX) };
  if (turn.wanted.size > 0) return { wants: turn.wanted };
  if (result.status !== "running") {
    const end = endOf(state, result, look);
    return "wants" in end || !state.needsCleaning ? end : { effects: [cleanEffect(state, look.facts, end)], waits: {} };
  }
  const waits = {
    ...(turn.dueMs !== Number.POSITIVE_INFINITY && { due: new Date(turn.dueMs) }),
    ...(turn.persons[0] !== undefined && { person: turn.persons.join("\n").slice(0, 2000) }),
    ...(turn.signals[0] !== undefined && { signal: turn.signals.join(", ").slice(0, 2000) }),
  };
  return { effects: turn.effects, waits };
}

/** Runs the steps of a list in sequence. */
export function runSequence(turn: Turn, frame: Frame): Result {
  let output: Json = null;
  for (const step of frame.steps) {
    const path = frame.prefix + step.name;
    const state = turn.state.steps.get(path);
    if (state === undefined) {
      if (frame.isCancelling) return CANCELLED;
      begin(turn, step, { path, frame, attempt: 1 });
      return RUNNING;
    }
    const result = advance(turn, step, { path, frame, state, runSequence });
    if (result.status !== "completed") return result;
    if (state.status !== "skipped") output = result.output;
  }
  return { status: "completed", output };
}

function rootFrame(state: WorkflowState, { steps }: WorkflowDefinition, facts: Readonly<JobFacts>): Frame {
  return { prefix: "", steps, outer: null, names: {}, isCancelling: facts.cancelRequested !== null || state.cancelling.has("") };
}

function deadlineOf(state: WorkflowState, { timeout }: WorkflowDefinition): string | null {
  if (timeout === undefined || state.startedAt === "") return null;
  return new Date(Date.parse(state.startedAt) + (durationFrom(String(timeout)) ?? 0)).toISOString();
}

function cleanEffect({ started, cleanup, root }: WorkflowState, { id }: Readonly<JobFacts>, { end }: WorkflowEnd): CleanEffect {
  return { id: `${id}/clean#${started}`, do: "clean", hasCompleted: end.finish === "completed", cleanup, root };
}

function endOf(
  state: WorkflowState,
  result: Exclude<Result, { status: "running" }>,
  { facts, known }: { facts: Readonly<JobFacts>; known: ReadonlyMap<string, KnownValue> },
): WorkflowEnd | Wants {
  const end = (finish: JobFinish, text: string | null) => ({ end: { finish, text: text?.slice(0, 2000) ?? null } });
  if (state.cancelling.get("") === "timeout") return end("timed_out", "the workflow timed out");
  if (result.status === "cancelled") return end("cancelled", facts.cancelRequested?.text || null);
  if (result.status === "failed") return end("failed", result.error.text);
  try {
    const found = outputWith(state, facts, known);
    return "wants" in found ? found : end("completed", null);
  } catch (error) {
    if (!(error instanceof CaissonError)) throw error;
    return end("failed", error.hint === undefined ? error.message : error.sentences);
  }
}

/**
 * Returns the output of an instance whose steps have completed: the definition's `output`, or the last step's. Throws
 * `invalid` for an output that does not match the definition, `too_large`.
 */
export async function outputOf(state: WorkflowState, facts: Readonly<JobFacts>, evaluator: Evaluator): Promise<Json> {
  return (await knowing(facts, evaluator, (known) => outputWith(state, facts, known))).output;
}

function outputWith(state: WorkflowState, facts: Readonly<JobFacts>, known: ReadonlyMap<string, KnownValue>): { output: Json } | Wants {
  const { definition } = state;
  if (definition === null || state.schedule !== null) return { output: null };
  const frame = rootFrame(state, definition, facts);
  const last = definition.steps.findLast((step: WorkflowStep) => state.steps.get(step.name)?.status === "completed");
  const turn = new Turn(state, { facts, now: new Date(lastTime(state)), known });
  try {
    const output =
      definition.output === undefined
        ? last === undefined
          ? null
          : (state.steps.get(last.name)?.output ?? null)
        : checkSize(fillIn(definition.output, turn.evaluating(frame)), "the output");
    if (definition.outputSchema !== undefined) checkAgainst(definition.outputSchema, output, "the output");
    return { output };
  } catch (error) {
    if (error === UNKNOWN) return { wants: turn.wanted };
    throw error;
  }
}

/** Comes from the state, not from the clock: a later evaluation must give the same output. */
function lastTime(state: WorkflowState): string {
  let last = state.startedAt;
  for (const { endedAt } of state.steps.values()) if (endedAt !== null && endedAt > last) last = endedAt;
  return last;
}
