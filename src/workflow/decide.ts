import type { DrivenFacts } from "../contract/driven.ts";
import type { DrivenFinish } from "../contract/driven-event.ts";
import { CaissonError } from "../contract/error.ts";
import type { WorkflowDefinition, WorkflowStep } from "../contract/workflow.ts";
import type { NewWorkflowEvent } from "../contract/workflow-event.ts";
import { durationFrom } from "../lib/quantity.ts";
import { advance, begin } from "./advance.ts";
import { checkAgainst } from "./check-value.ts";
import { fillIn } from "./expression.ts";
import { decideSchedule } from "./schedule.ts";
import type { Json, WorkflowState } from "./state.ts";
import { bounded, CANCELLED, type Frame, type Result, RUNNING, Turn, type WorkflowEffect } from "./turn.ts";

/** As many as one append takes, with room for the driver's own. */
const EVENTS_MAX = 500;

export type WorkflowDecision =
  | { append: readonly NewWorkflowEvent[]; isRetelling?: boolean }
  | { effects: readonly WorkflowEffect[]; waits: { due?: Date; person?: string; signal?: string } }
  | { end: { finish: DrivenFinish; text: string | null } };

/** What follows from an instance's state: pure, so that every process that folds the same events decides the same. */
export function decideWorkflow(state: WorkflowState, look: { facts: Readonly<DrivenFacts>; now: Date }): WorkflowDecision {
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
  if (result.status !== "running" && state.needsCleaning) {
    return { effects: [{ id: `${look.facts.id}/clean#${state.started}`, do: "clean" }], waits: {} };
  }
  if (result.status !== "running") return { end: endOf(state, result, look) };
  const waits = {
    ...(turn.dueMs !== Number.POSITIVE_INFINITY && { due: new Date(turn.dueMs) }),
    ...(turn.persons[0] !== undefined && { person: turn.persons.join("\n").slice(0, 2000) }),
    ...(turn.signals[0] !== undefined && { signal: turn.signals.join(", ").slice(0, 2000) }),
  };
  return { effects: turn.effects, waits };
}

/** The steps of a list, one after the other. */
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

function rootFrame(state: WorkflowState, { steps }: WorkflowDefinition, facts: Readonly<DrivenFacts>): Frame {
  return { prefix: "", steps, outer: null, names: {}, isCancelling: facts.cancelRequested !== null || state.cancelling.has("") };
}

function deadlineOf(state: WorkflowState, { timeout }: WorkflowDefinition): string | null {
  if (timeout === undefined || state.startedAt === "") return null;
  return new Date(Date.parse(state.startedAt) + (durationFrom(String(timeout)) ?? 0)).toISOString();
}

function endOf(
  state: WorkflowState,
  result: Exclude<Result, { status: "running" }>,
  { facts }: { facts: Readonly<DrivenFacts> },
): { finish: DrivenFinish; text: string | null } {
  if (state.cancelling.get("") === "timeout") return { finish: "timed_out", text: "its time was over" };
  if (result.status === "cancelled") return { finish: "cancelled", text: facts.cancelRequested?.text || null };
  if (result.status === "failed") return { finish: "failed", text: result.error.text.slice(0, 2000) };
  try {
    outputOf(state, facts);
    return { finish: "completed", text: null };
  } catch (error) {
    if (!(error instanceof CaissonError)) throw error;
    return { finish: "failed", text: error.message.slice(0, 2000) };
  }
}

/**
 * What came of an instance whose steps have completed: the definition's `output`, or the last step's. Throws `invalid`
 * for one that is not as the definition says, `too_large`.
 */
export function outputOf(state: WorkflowState, facts: Readonly<DrivenFacts>): Json {
  const { definition } = state;
  if (definition === null || state.schedule !== null) return null;
  const frame = rootFrame(state, definition, facts);
  const last = definition.steps.findLast((step: WorkflowStep) => state.steps.get(step.name)?.status === "completed");
  const turn = new Turn(state, { facts, now: new Date(lastTime(state)) });
  const output =
    definition.output === undefined
      ? last === undefined
        ? null
        : (state.steps.get(last.name)?.output ?? null)
      : bounded(fillIn(definition.output, turn.scopeIn(frame)), "the output");
  if (definition.outputSchema !== undefined) checkAgainst(definition.outputSchema, output, "the output");
  return output;
}

/** Of the state, not of the clock: it is looked at again later, and has to be the same. */
function lastTime(state: WorkflowState): string {
  let last = state.startedAt;
  for (const { endedAt } of state.steps.values()) if (endedAt !== null && endedAt > last) last = endedAt;
  return last;
}
