import { z } from "zod";
import { recordOf } from "./bounded.ts";
import { DrivenView } from "./driven.ts";
import { JsonValue } from "./json-value.ts";
import { WorkspaceSource } from "./session.ts";
import { StepError, StepStatus, WorkflowSchedule } from "./workflow-event.ts";

/** Arguments and answers of the station's verbs about workflows. */

const by = z.string().min(1).max(200);

export const StartWorkflow = z.strictObject({
  /** As a file says it; checked by `validate`. */
  definition: JsonValue,
  input: recordOf(z.string().max(100), JsonValue, 1000).default({}),
  /** What the workspaces of its agents and commands begin with. Default an empty one. */
  source: WorkspaceSource.optional(),
  /** Instead of the models that its steps name. */
  model: z.string().min(1).max(256).optional(),
  /** Starts an instance of it at these times, until it is cancelled; times that were missed count as one. */
  schedule: WorkflowSchedule.optional(),
});
export type StartWorkflow = z.infer<typeof StartWorkflow>;
export type StartWorkflowInput = z.input<typeof StartWorkflow>;

export const WorkflowStepView = z.object({
  path: z.string(),
  kind: z.string(),
  status: z.enum(["running", ...StepStatus.options]),
  attempt: z.int().positive(),
  /** A run's or a workflow's stream. */
  child: z.string().nullable(),
  output: JsonValue,
  error: StepError.nullable(),
  /** When a timer runs out, or it is tried again. */
  due: z.string().nullable(),
  startedAt: z.string(),
  endedAt: z.string().nullable(),
});
export type WorkflowStepView = z.infer<typeof WorkflowStepView>;

export const WorkflowView = DrivenView.extend({
  definition: JsonValue,
  digest: z.string(),
  input: JsonValue,
  data: JsonValue,
  /** The stream of the workflow that all of these are parts of. */
  root: z.string(),
  /** Of one that starts instances: when the next is due, and how many were started and passed over. */
  schedule: WorkflowSchedule.extend({
    next: z.string().nullable(),
    started: z.int().nonnegative(),
    passedOver: z.int().nonnegative(),
  }).nullable(),
  /** In the order in which they were started. */
  steps: z.array(WorkflowStepView),
  /** Of one that has completed. */
  output: JsonValue,
});
export type WorkflowView = z.infer<typeof WorkflowView>;

export const WorkflowProblems = z.object({
  problems: z.array(z.object({ path: z.string(), text: z.string(), hint: z.string().optional() })),
});
export type WorkflowProblems = z.infer<typeof WorkflowProblems>;

export const SendSignal = z.strictObject({
  name: z.string().regex(/^[a-z][a-zA-Z0-9_]{0,39}$/, "must be a signal's name, as the step has it"),
  data: JsonValue.default(null),
  /** A second signal with the same key is the same one. */
  key: z.string().min(1).max(200).optional(),
  by: by.default("user"),
});
export type SendSignal = z.input<typeof SendSignal>;

export const AnswerApproval = z.strictObject({
  approved: z.boolean(),
  text: z.string().max(4000).default(""),
  /** Which step's; needed where several ask. */
  path: z.string().max(1000).optional(),
  by: by.default("user"),
});
export type AnswerApproval = z.input<typeof AnswerApproval>;
