import { Cron } from "croner";
import type { JobFacts } from "../contract/durable/durable-job.ts";
import { CaissonError } from "../contract/error/error.ts";
import type { WorkflowDefinition } from "../contract/workflow/workflow.ts";
import type { NewWorkflowEvent } from "../contract/workflow/workflow-event.ts";
import type { WorkflowDecision } from "./decide.ts";
import { FIRING, type Json, type ScheduleState, type StepState, type WorkflowState } from "./state.ts";
import type { StepEffect } from "./turn.ts";

/** The number of events after which a schedule's log is compacted: about two hundred instances. */
const EVENTS_MAX = 1000;

/** Throws `invalid` for a malformed schedule, or one that never matches. */
export function checkCron(cron: string): void {
  try {
    if (new Cron(cron, { timezone: "UTC" }).nextRun() !== null) return;
  } catch (error) {
    throw new CaissonError("invalid", `${JSON.stringify(cron)} is not a schedule: ${(error as Error).message.slice(0, 200)}`, {
      hint: 'Use minute, hour, day, month, weekday: "0 9 * * 1-5" is nine o\'clock from Monday to Friday.',
    });
  }
  throw new CaissonError("invalid", `the schedule ${JSON.stringify(cron)} never matches`);
}

/** Returns the next time of a schedule, or null if the schedule has ended. */
export function nextTime({ cron, from }: ScheduleState): Date | null {
  return new Cron(cron, { timezone: "UTC" }).nextRun(new Date(from));
}

/**
 * Decides what follows for a scheduled workflow. A due time is recorded before anything starts, and the next time is
 * computed from then on, so one instance starts no matter how many times were missed.
 */
export function decideSchedule(
  state: WorkflowState & { schedule: ScheduleState },
  { facts, now }: { facts: Readonly<JobFacts>; now: Date },
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

/** Returns the events that replace the log on compaction: the definition and the current state. */
function summedUp(state: WorkflowState & { schedule: ScheduleState }): NewWorkflowEvent[] {
  const { definition, digest, input, source, root, depth, model, cleanup, started, steps } = state;
  const { cron, overlap, from, queued, passedOver } = state.schedule;
  const step = steps.get(FIRING);
  const last = step === undefined ? null : lastOf(step);
  return [
    {
      type: "workflow.defined",
      data: {
        ...{ definition: definition as unknown as Json, digest, input, source, root, depth, model, schedule: { cron, overlap } },
        ...(cleanup !== null && { cleanup }),
      },
    },
    { type: "workflow.summed_up", data: { from, queued, started, passedOver, last } },
  ];
}

function lastOf({ attempt, status, given: input, output, error, due, child, startedAt, endedAt }: StepState) {
  return { attempt, status, given: input, output, error, due, child, startedAt, endedAt };
}

function start(state: WorkflowState, { due, now }: { due: string; now: Date }): WorkflowDecision {
  const attempt = (state.steps.get(FIRING)?.attempt ?? 0) + 1;
  const input = { input: state.input, at: now.toISOString() };
  return {
    append: [{ type: "workflow.step_started", data: { path: FIRING, kind: "workflow", attempt, given: input, due, deadline: null } }],
  };
}

/** Returns the key by which an instance is found again: always the same for the same schedule and number. */
export const firingId = (schedule: string, attempt: number): string => `${schedule}/${FIRING}#${attempt}`;

/** The depth of a schedule, so that the workflows it starts are at the top level. */
export const OF_SCHEDULE = -1;

/** Like the effect of a workflow step, but each instance is separate, with its own workspaces. */
function effectOf(state: WorkflowState, facts: Readonly<JobFacts>, cancel: boolean): StepEffect {
  const { attempt = 1, given: input = null, child = null } = state.steps.get(FIRING) ?? {};
  const id = firingId(facts.id, attempt);
  const step = { name: FIRING, kind: "workflow" as const, definition: state.definition as WorkflowDefinition };
  const of = { kind: "workflow" as const, path: FIRING, attempt, given: input as Json, deadline: null, child, done: null, step };
  const common = {
    ...of,
    scope: null,
    source: state.source,
    model: state.model,
    cleanup: state.cleanup,
    root: null,
    depth: OF_SCHEDULE,
    ...(cancel && { cancel }),
  };
  return child === null ? { id, do: "start", ...common } : { id: `${id}:end`, do: "collect", after: child, ...common };
}
