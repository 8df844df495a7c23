import { z } from "zod";
import { recordOf } from "../bounded.ts";
import { JobView } from "../durable/durable-job.ts";
import { JsonValue } from "../json-value.ts";
import { SessionCleanup, WorkspaceSource } from "../session/session.ts";
import { StepError, StepStatus, WorkflowSchedule } from "./workflow-event.ts";

/** Arguments and answers of the station's verbs for workflows. */

const by = z.string().min(1).max(200);

export const StartWorkflow = z.strictObject({
  /** The parsed content of a workflow file; checked by `validate`. */
  definition: JsonValue,
  input: recordOf(z.string().max(100), JsonValue, 1000).default({}),
  /** The source of the workspaces of its agents and commands. Default: empty. */
  source: WorkspaceSource.optional(),
  /** Replaces the models that its steps name. */
  model: z.string().min(1).max(256).optional(),
  /** When the workspaces of its steps are removed. Replaces what the definition says. */
  cleanup: SessionCleanup.optional(),
  /** Starts an instance at these times until cancelled; missed times count as one. */
  schedule: WorkflowSchedule.optional(),
});
export type StartWorkflow = z.infer<typeof StartWorkflow>;

export const WorkflowStepView = z.object({
  path: z.string(),
  kind: z.string(),
  status: z.enum(["running", ...StepStatus.options]),
  attempt: z.int().positive(),
  /** The stream of its run or workflow. */
  child: z.string().nullable(),
  output: JsonValue,
  error: StepError.nullable(),
  /** When a timer expires, or the step is retried. */
  due: z.string().nullable(),
  startedAt: z.string(),
  endedAt: z.string().nullable(),
});
export type WorkflowStepView = z.infer<typeof WorkflowStepView>;

export const WorkflowView = JobView.extend({
  definition: JsonValue,
  digest: z.string(),
  input: JsonValue,
  data: JsonValue,
  /** The stream of the root workflow. */
  root: z.string(),
  /** Only for a schedule: when the next instance is due, and how many were started and skipped. */
  schedule: WorkflowSchedule.extend({
    next: z.string().nullable(),
    started: z.int().nonnegative(),
    passedOver: z.int().nonnegative(),
  }).nullable(),
  /** In the order in which they started. */
  steps: z.array(WorkflowStepView),
  /** Only after it has completed. */
  output: JsonValue,
});
export type WorkflowView = z.infer<typeof WorkflowView>;

export const WorkflowProblems = z.object({
  problems: z.array(z.object({ path: z.string(), text: z.string(), hint: z.string().optional() })),
});
export type WorkflowProblems = z.infer<typeof WorkflowProblems>;

export const SendSignal = z.strictObject({
  name: z.string().regex(/^[a-z][a-zA-Z0-9_]{0,39}$/, "must be a signal name, as in the step"),
  data: JsonValue.default(null),
  /** A second signal with the same key is ignored. */
  key: z.string().min(1).max(200).optional(),
  by: by.default("user"),
});
export type SendSignal = z.input<typeof SendSignal>;

export const AnswerApproval = z.strictObject({
  approved: z.boolean(),
  text: z.string().max(4000).default(""),
  /** The step to answer; required if several are waiting. */
  path: z.string().max(1000).optional(),
  by: by.default("user"),
});
export type AnswerApproval = z.input<typeof AnswerApproval>;
