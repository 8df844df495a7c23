import { z } from "zod";
import { reachOfWorkflow } from "../contract/api/required-scopes.ts";
import { JobEvent } from "../contract/durable/durable-event.ts";
import { JobList, ListJobs } from "../contract/durable/durable-job.ts";
import { JsonValue } from "../contract/json-value.ts";
import { OwnWorkflowEvent } from "../contract/workflow/workflow-event.ts";
import { AnswerApproval, SendSignal, StartWorkflow, WorkflowProblems, WorkflowView } from "../contract/workflow/workflow-verbs.ts";
import { jobVerbs } from "./durable-jobs.ts";
import { type VerbsOf, verb, verbOfType } from "./verb.ts";

const PER_PAGE = 50;
const PER_PAGE_MAX = 1000;
const params = { workflow: z.string().regex(/^wf_[a-z2-7]{1,12}$/, "a workflow's id looks like wf_k3v7q2m5x4ab") };
const NumberedWorkflowEvent = z.union([JobEvent, OwnWorkflowEvent]).and(z.object({ seq: z.int().positive() }));

/** Workflow instances, besides the verbs of every durable job. */
export const workflows = {
  /** Lists what is wrong with a definition, and where. Creates nothing. */
  validate: verb({
    path: "POST /v1/workflows/validate",
    takes: z.strictObject({ definition: JsonValue }),
    lead: "definition",
    gives: WorkflowProblems,
    scope: "read",
    owned: "everyone",
    summary: "List what is wrong with a workflow definition, and where.",
  }),
  /**
   * Creates an instance and starts to drive it. A station drives the instance until it ends; another process drives it
   * only while the process lives. Throws `invalid` with the faulty place in the definition or the input, and
   * `too_large`; leaves nothing behind then.
   */
  start: verb({
    path: "POST /v1/workflows",
    takes: StartWorkflow,
    owner: true,
    apart: true,
    gives: WorkflowView,
    status: 201,
    reaches: reachOfWorkflow,
    scope: "run",
    owned: "by hand",
    summary:
      "Start an instance of a workflow definition. Later changes to the definition do not affect it. The station drives it until it ends.",
  }),
  /** Stores a signal until a step takes it. Throws `conflict` for an instance that has ended. */
  signal: verb({
    path: "POST /v1/workflows/{workflow}/signals",
    params,
    takes: SendSignal.omit({ by: true }),
    by: true,
    gives: WorkflowView,
    scope: "run",
    owned: "workflow",
    summary: "Send an instance a signal, which is stored until a step takes it.",
  }),
  /**
   * Answers an approval step. Throws `not_found` if no step waits for an answer, or if the given step does not, and
   * `invalid` if several steps wait.
   */
  approve: verb({
    path: "POST /v1/workflows/{workflow}/approvals",
    params,
    takes: AnswerApproval.omit({ by: true }),
    by: true,
    gives: WorkflowView,
    scope: "run",
    owned: "workflow",
    summary: "Answer a step that requests an approval.",
  }),
  /** Continues a failed instance from the steps that failed. Throws `conflict` for any other. */
  retry: verb({
    path: "POST /v1/workflows/{workflow}/retry",
    params,
    by: true,
    gives: WorkflowView,
    scope: "run",
    owned: "workflow",
    summary: "Continue a failed instance from the steps that failed.",
  }),
  /** Lists instances, last changed first. Throws `invalid` for a malformed cursor. */
  list: verbOfType<(options?: ListJobs) => Promise<JobList>>()({
    path: "GET /v1/workflows",
    query: ListJobs.omit({ parent: true, limit: true }).extend({
      /** The stream of the instance whose parts to list; `none` for instances that are not a part of another. */
      parent: z.string().max(200).optional(),
      limit: z.int().min(1).max(PER_PAGE_MAX).default(PER_PAGE),
    }),
    answer: { json: JobList },
    scope: "read",
    owned: "by hand",
    summary: "List workflow instances, last changed first.",
  }),
  ...jobVerbs({ group: "workflows", thing: "workflow", view: WorkflowView, event: NumberedWorkflowEvent, about: { params } }),
};

export type WorkflowVerbs = VerbsOf<typeof workflows>;
