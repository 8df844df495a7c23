import { Cron } from "croner";
import type { DrivenFacts } from "../contract/driven.ts";
import { CaissonError } from "../contract/error.ts";
import type { WorkflowDefinition } from "../contract/workflow.ts";
import type { NewWorkflowEvent } from "../contract/workflow-event.ts";
import type { WorkflowDecision } from "./decide.ts";
import { FIRING, type Json, type ScheduleState, type StepState, type WorkflowState } from "./state.ts";
import type { StepEffect } from "./turn.ts";

/** So many events are in a schedule's log before it is told anew: those of some two hundred instances. */
const EVENTS_MAX = 1000;

/** Throws `invalid` for times that never come. */
export function checkCron(cron: string): void {
  try {
    if (new Cron(cron, { timezone: "UTC" }).nextRun() !== null) return;
  } catch (error) {
    throw new CaissonError("invalid", `${JSON.stringify(cron)} is no schedule: ${(error as Error).message.slice(0, 200)}`, {
      hint: 'Minute, hour, day, month, weekday: "0 9 * * 1-5" is nine o\'clock from Monday to Friday.',
    });
  }
  throw new CaissonError("invalid", `the times ${JSON.stringify(cron)} never come`);
}

/** The next time of a schedule; null for none. */
export function nextTime({ cron, from }: ScheduleState): Date | null {
  return new Cron(cron, { timezone: "UTC" }).nextRun(new Date(from));
}

/**
 * What follows for a workflow that starts instances of itself. A time that has come is noted before anything is
 * started, and the next one is looked for from then on: so however many were missed, one instance is started for them.
 */
export function decideSchedule(
  state: WorkflowState & { schedule: ScheduleState },
  { facts, now }: { facts: Readonly<DrivenFacts>; now: Date },
): WorkflowDecision {
  const { schedule } = state;
  const isCancelling = facts.cancelRequested !== null;
  const isAtWork = state.steps.get(FIRING)?.status === "running";
  const effects = isAtWork ? [effectOf(state, facts, isCancelling)] : [];
  if (isCancelling) return isAtWork ? { effects, waits: {} } : { end: { finish: "cancelled", text: facts.cancelRequested?.text || null } };
  if (schedule.events >= EVENTS_MAX) return { append: summedUp(state), isRetelling: true };
  if (!isAtWork && schedule.queued !== null) return start(state, { due: schedule.queued, now });
  const due = nextTime(schedule);
  if (due === null) return isAtWork ? { effects, waits: {} } : { end: { finish: "completed", text: null } };
  if (due > now) return { effects, waits: { due } };
  if (!isAtWork) return start(state, { due: due.toISOString(), now });
  const queued = schedule.overlap === "queue";
  return { append: [{ type: "workflow.passed_over", data: { due: due.toISOString(), at: now.toISOString(), queued } }] };
}

/** What it is, and what it has come to. */
function summedUp(state: WorkflowState & { schedule: ScheduleState }): NewWorkflowEvent[] {
  const { definition, digest, input, source, root, depth, model, started, steps } = state;
  const { cron, overlap, from, queued, passedOver } = state.schedule;
  const step = steps.get(FIRING);
  const last = step === undefined ? null : lastOf(step);
  return [
    {
      type: "workflow.defined",
      data: { definition: definition as unknown as Json, digest, input, source, root, depth, model, schedule: { cron, overlap } },
    },
    { type: "workflow.summed_up", data: { from, queued, started, passedOver, last } },
  ];
}

function lastOf({ attempt, status, given, output, error, due, child, startedAt, endedAt }: StepState) {
  return { attempt, status, given, output, error, due, child, startedAt, endedAt };
}

function start(state: WorkflowState, { due, now }: { due: string; now: Date }): WorkflowDecision {
  const attempt = (state.steps.get(FIRING)?.attempt ?? 0) + 1;
  const given = { input: state.input, at: now.toISOString() };
  return { append: [{ type: "workflow.step_started", data: { path: FIRING, kind: "workflow", attempt, given, due, deadline: null } }] };
}

/** By which an instance is found again: the same for the same schedule and number. */
export const firingId = (schedule: string, attempt: number): string => `${schedule}/${FIRING}#${attempt}`;

/** How deep a schedule is: what it starts is below nothing. */
export const OF_SCHEDULE = -1;

/** As for a step that is a workflow, but that each instance is one of its own, with workspaces of its own. */
function effectOf(state: WorkflowState, facts: Readonly<DrivenFacts>, cancel: boolean): StepEffect {
  const { attempt = 1, given = null, child = null } = state.steps.get(FIRING) ?? {};
  const id = firingId(facts.id, attempt);
  const step = { name: FIRING, kind: "workflow" as const, definition: state.definition as WorkflowDefinition };
  const of = { kind: "workflow" as const, path: FIRING, attempt, given: given as Json, deadline: null, child, done: null, step };
  const common = {
    ...of,
    scope: null,
    source: state.source,
    model: state.model,
    root: null,
    depth: OF_SCHEDULE,
    ...(cancel && { cancel }),
  };
  return child === null ? { id, do: "start", ...common } : { id: `${id}:end`, do: "collect", after: child, ...common };
}
