import { z } from "zod";
import { DrivenList, ListDriven } from "../driven.ts";
import { DrivenEvent } from "../driven-event.ts";
import { JsonValue } from "../json-value.ts";
import { OwnWorkflowEvent } from "../workflow-event.ts";
import { AnswerApproval, SendSignal, StartWorkflow, WorkflowProblems, WorkflowView } from "../workflow-verbs.ts";
import { reachOfWorkflow } from "./reach.ts";
import type { Route } from "./route.ts";

const EVENTS_PER_PAGE = 100;
const EVENTS_PER_PAGE_MAX = 1000;
const PER_PAGE = 50;
const PER_PAGE_MAX = 1000;
/** As of runs: shorter than what proxies between allow. */
const WAIT_MS_MAX = 25_000;

const params = { workflow: z.string().regex(/^wf_[a-z2-7]{1,12}$/, "a workflow's id looks like wf_k3v7q2m5x4ab") };
const reason = z.strictObject({ text: z.string().max(2000).optional() });
const NumberedWorkflowEvent = z.union([DrivenEvent, OwnWorkflowEvent]).and(z.object({ seq: z.int().positive() }));

export const workflowRoutes = {
  "workflows.validate": {
    summary: "What is wrong with a workflow's definition, and where.",
    scope: "read",
    body: z.strictObject({ definition: JsonValue }),
    answer: { json: WorkflowProblems },
  },
  "workflows.start": {
    summary: "Start a workflow: an instance of a definition, which later changes of it do not touch. The station drives it to its end.",
    scope: "run",
    body: StartWorkflow,
    reaches: reachOfWorkflow,
    answer: { status: 201, json: WorkflowView },
  },
  "workflows.list": {
    summary: "List instances of workflows, the last changed first.",
    scope: "read",
    query: ListDriven.omit({ parent: true, limit: true }).extend({
      /** Parts of this one, by its stream; `none`: those that are nobody's. */
      parent: z.string().max(200).optional(),
      limit: z.int().min(1).max(PER_PAGE_MAX).default(PER_PAGE),
    }),
    answer: { json: DrivenList },
  },
  "workflows.get": { summary: "One instance, with its steps.", scope: "read", params, answer: { json: WorkflowView } },
  "workflows.events": {
    summary: "The events of an instance: a page as JSON, or all as server-sent events until it ends, whose ids are sequence numbers.",
    scope: "read",
    params,
    query: z.strictObject({
      fromSeq: z.int().min(1).optional(),
      limit: z.int().min(1).max(EVENTS_PER_PAGE_MAX).default(EVENTS_PER_PAGE),
    }),
    answer: {
      json: z.object({ events: z.array(NumberedWorkflowEvent), next: z.int().positive().nullable() }),
      events: NumberedWorkflowEvent,
    },
  },
  "workflows.wait": {
    summary: "An instance once it has ended or, with `orPerson`, waits for a person; or as it is after `timeoutMs`: then ask again.",
    scope: "read",
    params,
    query: z.strictObject({
      timeoutMs: z.int().min(0).max(WAIT_MS_MAX).default(WAIT_MS_MAX),
      orPerson: z.boolean().default(false),
    }),
    answer: { json: WorkflowView },
  },
  "workflows.cancel": {
    summary: "End an instance, with what is at work for it.",
    scope: "run",
    params,
    body: reason,
    bodyOptional: true,
    answer: { json: WorkflowView },
  },
  "workflows.pause": {
    summary: "Begin nothing new until it is resumed.",
    scope: "run",
    params,
    body: reason,
    bodyOptional: true,
    answer: { json: WorkflowView },
  },
  "workflows.resume": { summary: "Go on with an instance that was paused.", scope: "run", params, answer: { json: WorkflowView } },
  "workflows.signal": {
    summary: "Send an instance a signal; it is kept until a step takes it.",
    scope: "run",
    params,
    body: SendSignal.omit({ by: true }),
    answer: { json: WorkflowView },
  },
  "workflows.approve": {
    summary: "Answer a step that asks for an approval.",
    scope: "run",
    params,
    body: AnswerApproval.omit({ by: true }),
    answer: { json: WorkflowView },
  },
  "workflows.retry": {
    summary: "Go on with an instance that has failed, from the steps that failed.",
    scope: "run",
    params,
    answer: { json: WorkflowView },
  },
  "workflows.remove": {
    summary: "Forget an instance that is over, with the workflows that were its steps.",
    scope: "run",
    params,
    answer: {},
  },
} as const satisfies Record<string, Route>;
