import { z } from "zod";
import { defineEvent } from "./define-event.ts";
import { type DrivenEvent, drivenFamily } from "./driven-event.ts";
import type { NewEventOf } from "./event-family.ts";
import { JsonValue } from "./json-value.ts";
import { WorkspaceSource } from "./session.ts";

/** The events of a workflow's instance, in the stream `workflow/<id>`, besides those that everything driven has. */

/** Where a step stands: names of steps and branches, and numbers of items, with `/` between them. */
const path = z.string().max(1000);
const attempt = z.int().positive();
const time = z.iso.datetime();

export const StepError = z.object({ code: z.string().max(64), text: z.string().max(4000) });
export type StepError = z.infer<typeof StepError>;
export const StepStatus = z.enum(["completed", "failed", "cancelled", "skipped"]);
export type StepStatus = z.infer<typeof StepStatus>;

/** When instances are started, and what becomes of a time that comes while the last one is not over. */
export const WorkflowSchedule = z.strictObject({
  /** Minute, hour, day, month, weekday, in UTC. */
  cron: z.string().min(1).max(200),
  /** `skip`: it is passed over. `queue`: once that one is over, however many times came meanwhile. */
  overlap: z.enum(["skip", "queue"]).default("skip"),
});
export type WorkflowSchedule = z.infer<typeof WorkflowSchedule>;

/** What it is, for good: a later change of the file changes nothing here. */
export const WorkflowDefined = defineEvent("workflow.defined", 1, {
  definition: JsonValue,
  /** SHA-256 of the definition. */
  digest: z.string().max(64),
  input: JsonValue,
  source: WorkspaceSource.nullable(),
  /** The stream of the workflow that all of these are parts of; its own for one that is nobody's. */
  root: z.string().max(200),
  /** How many workflows it is below. */
  depth: z.int().nonnegative(),
  /** Stands in for the models that its steps name. */
  model: z.string().max(256).nullable(),
  /** It is not gone through itself: an instance of it is started each time. */
  schedule: WorkflowSchedule.optional(),
});
/** A time of a schedule came while the instance of the one before was not over. */
export const WorkflowPassedOver = defineEvent("workflow.passed_over", 1, { due: time, at: time, queued: z.boolean() });
/** What a schedule had come to when its log was told anew: what came before is not there any more. */
export const WorkflowSummedUp = defineEvent("workflow.summed_up", 1, {
  /** After which time the next one is looked for. */
  from: time,
  /** The first time that waits for the end of the last instance. */
  queued: time.nullable(),
  started: z.int().nonnegative(),
  passedOver: z.int().nonnegative(),
  /** The last instance that was started; its attempt is its number. */
  last: z
    .object({
      attempt,
      status: z.enum(["running", ...StepStatus.options]),
      given: JsonValue,
      output: JsonValue,
      error: StepError.nullable(),
      due: time.nullable(),
      child: z.string().max(200).nullable(),
      startedAt: time,
      endedAt: time.nullable(),
    })
    .nullable(),
});
/** The intent of a step. What it was given is evaluated once, here. */
export const WorkflowStepStarted = defineEvent("workflow.step_started", 1, {
  path,
  kind: z.string().max(32),
  attempt,
  given: JsonValue,
  /** When a timer has run out. */
  due: time.nullable(),
  /** When its time is over. */
  deadline: time.nullable(),
});
/** A run or a workflow was started for it. */
export const WorkflowChildStarted = defineEvent("workflow.child_started", 1, { path, attempt, child: z.string().max(200) });
/** A command has ended that was run in the workspace of an earlier step; the step ends once that is free again. */
export const WorkflowCommandEnded = defineEvent("workflow.command_ended", 1, {
  path,
  attempt,
  status: StepStatus.exclude(["skipped"]),
  output: JsonValue,
  error: StepError.nullable(),
});
export const WorkflowStepEnded = defineEvent("workflow.step_ended", 1, {
  path,
  attempt,
  status: StepStatus,
  output: JsonValue,
  error: StepError.nullable(),
  /** When it is tried again. */
  retryAt: time.nullable(),
  /** Changes of the shared data, by their paths. */
  data: z.record(z.string().max(500), JsonValue),
  /** The signal that it took: how many came before. */
  signal: z.int().nonnegative().nullable(),
});
/** What is at work below this path is to be ended; the empty path is the whole workflow. */
export const WorkflowCancelling = defineEvent("workflow.cancelling", 1, { path, why: z.enum(["timeout", "joined", "failed"]) });
export const WorkflowSignalled = defineEvent("workflow.signalled", 1, {
  name: z.string().max(64),
  /** Chosen by the sender: a second signal with the same key is the same one. */
  key: z.string().max(200).nullable(),
  data: JsonValue,
  by: z.string().max(200),
});
export const WorkflowAnswered = defineEvent("workflow.answered", 1, {
  path,
  attempt,
  approved: z.boolean(),
  text: z.string().max(4000),
  by: z.string().max(200),
});
/** Steps that failed are tried once more. */
export const WorkflowRetried = defineEvent("workflow.retried", 1, { by: z.string().max(200) });

/** What its commands left behind, their sandbox, is gone. */
export const WorkflowCleaned = defineEvent("workflow.cleaned", 1, { sandboxes: z.int().nonnegative() });

const own = [
  WorkflowDefined,
  WorkflowPassedOver,
  WorkflowSummedUp,
  WorkflowStepStarted,
  WorkflowChildStarted,
  WorkflowCommandEnded,
  WorkflowStepEnded,
  WorkflowCancelling,
  WorkflowSignalled,
  WorkflowAnswered,
  WorkflowRetried,
  WorkflowCleaned,
] as const;
export const workflowEvents = drivenFamily(own);
export const OwnWorkflowEvent = z.discriminatedUnion("type", own);
export type OwnWorkflowEvent = z.infer<typeof OwnWorkflowEvent>;
export type NewWorkflowEvent = NewEventOf<OwnWorkflowEvent>;
export type WorkflowEvent = OwnWorkflowEvent | DrivenEvent;
