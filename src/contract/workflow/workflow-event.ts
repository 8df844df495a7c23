import { z } from "zod";
import { type JobEvent, jobFamily } from "../durable/durable-event.ts";
import { concerns, defineEvent } from "../event/define-event.ts";
import type { NewEventOf } from "../event/event-family.ts";
import { SessionId } from "../ids.ts";
import { JsonValue } from "../json-value.ts";
import { SessionCleanup, WorkspaceSource } from "../session/session.ts";

/** The events of a workflow instance, in the stream `workflow/<id>`, in addition to those of all durable jobs. */

/** The path of a step: names of steps and branches, and numbers of items, separated by `/`. */
const path = z.string().max(1000);
const attempt = z.int().positive();
const time = z.iso.datetime();

export const StepError = z.object({ code: z.string().max(64), text: z.string().max(4000) });
export type StepError = z.infer<typeof StepError>;
export const StepStatus = z.enum(["completed", "failed", "cancelled", "skipped"]);
export type StepStatus = z.infer<typeof StepStatus>;

/** When instances start, and what happens at a due time if the previous instance has not ended. */
export const WorkflowSchedule = z.strictObject({
  /** Minute, hour, day, month, weekday, in UTC. */
  cron: z.string().min(1).max(200),
  /** `skip`: skips the start. `queue`: starts one instance when the previous one ends, however many times came due. */
  overlap: z.enum(["skip", "queue"]).default("skip"),
});
export type WorkflowSchedule = z.infer<typeof WorkflowSchedule>;

/** The instance's permanent definition: later changes of the file do not affect it. */
export const WorkflowDefined = defineEvent("workflow.defined", 1, concerns("state"), {
  definition: JsonValue,
  /** SHA-256 of the definition. */
  digest: z.string().max(64),
  input: JsonValue,
  source: WorkspaceSource.nullable(),
  /** The stream of the root workflow; the instance's own stream if it has no parent. */
  root: z.string().max(200),
  /** Number of workflows that contain it. */
  depth: z.int().nonnegative(),
  /** Replaces the models that its steps name. */
  model: z.string().max(256).nullable(),
  /** When the workspaces of its steps are removed, instead of what the definition says. */
  cleanup: SessionCleanup.optional(),
  /** If present, this workflow runs no steps itself but starts a separate instance each time. */
  schedule: WorkflowSchedule.optional(),
});
/** A schedule's time came due while the previous instance was still running. */
export const WorkflowPassedOver = defineEvent("workflow.passed_over", 1, concerns("state", "terminal"), {
  due: time,
  at: time,
  queued: z.boolean(),
});
/** The state of a schedule when its log was compacted, which removed earlier events. */
export const WorkflowSummedUp = defineEvent("workflow.summed_up", 1, concerns("state"), {
  /** The time after which to look for the next match. */
  from: time,
  /** The earliest skipped time, which waits for the end of the last instance. */
  queued: time.nullable(),
  started: z.int().nonnegative(),
  passedOver: z.int().nonnegative(),
  /** The last instance that was started; `attempt` is its number. */
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
/** The intent of a step. Its input is evaluated once, here. */
export const WorkflowStepStarted = defineEvent("workflow.step_started", 1, concerns("state", "terminal", "console"), {
  path,
  kind: z.string().max(32),
  attempt,
  given: JsonValue,
  /** When the timer expires. */
  due: time.nullable(),
  /** When the step times out. */
  deadline: time.nullable(),
});
/** A run or workflow was started for the step. */
export const WorkflowChildStarted = defineEvent("workflow.child_started", 1, concerns("state", "terminal", "console"), {
  path,
  attempt,
  child: z.string().max(200),
});
/** A command in the workspace of an earlier step ended; the step itself ends when the workspace is released. */
export const WorkflowCommandEnded = defineEvent("workflow.command_ended", 1, concerns("state"), {
  path,
  attempt,
  status: StepStatus.exclude(["skipped"]),
  output: JsonValue,
  error: StepError.nullable(),
});
export const WorkflowStepEnded = defineEvent("workflow.step_ended", 1, concerns("state", "terminal", "console"), {
  path,
  attempt,
  status: StepStatus,
  output: JsonValue,
  error: StepError.nullable(),
  /** Time of the next attempt. */
  retryAt: time.nullable(),
  /** Changes of the shared data, by path. */
  data: z.record(z.string().max(500), JsonValue),
  /** The index of the signal that the step received. */
  signal: z.int().nonnegative().nullable(),
});
/** The work below this path is being ended; the empty path is the whole workflow. */
export const WorkflowCancelling = defineEvent("workflow.cancelling", 1, concerns("state"), {
  path,
  why: z.enum(["timeout", "joined", "failed"]),
});
export const WorkflowSignalled = defineEvent("workflow.signalled", 1, concerns("state"), {
  name: z.string().max(64),
  /** Chosen by the sender. A second signal with the same key is ignored. */
  key: z.string().max(200).nullable(),
  data: JsonValue,
  by: z.string().max(200),
});
export const WorkflowAnswered = defineEvent("workflow.answered", 1, concerns("state", "console"), {
  path,
  attempt,
  approved: z.boolean(),
  text: z.string().max(4000),
  by: z.string().max(200),
});
/** Failed steps are retried. */
export const WorkflowRetried = defineEvent("workflow.retried", 1, concerns("state"), { by: z.string().max(200) });

/** Workspaces that an event names; the rest are in the histories of the sessions. */
export const CLEANED_SESSIONS_MAX = 1000;
/** The sandbox that the commands left behind was removed, and the workspaces that go with the workflow. */
export const WorkflowCleaned = defineEvent("workflow.cleaned", 1, concerns("state", "terminal"), {
  sandboxes: z.int().nonnegative(),
  /** Absent: no workspace was removed. */
  sessions: z.array(SessionId).max(CLEANED_SESSIONS_MAX).optional(),
});

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
export const workflowEvents = jobFamily(own);
export const OwnWorkflowEvent = z.discriminatedUnion("type", own);
export type OwnWorkflowEvent = z.infer<typeof OwnWorkflowEvent>;
export type NewWorkflowEvent = NewEventOf<OwnWorkflowEvent>;
export type WorkflowEvent = OwnWorkflowEvent | JobEvent;
