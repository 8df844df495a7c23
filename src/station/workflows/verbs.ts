import type { WorkflowEvent } from "../../contract/workflow-event.ts";
import type { AnswerApproval, SendSignal, StartWorkflowInput, WorkflowProblems, WorkflowView } from "../../contract/workflow-verbs.ts";
import type { DrivenVerbs } from "../driven/verbs.ts";

/** What can be done with instances of workflows, besides what can be done with everything driven. */
export interface WorkflowVerbs extends DrivenVerbs<WorkflowEvent, WorkflowView> {
  /** What is wrong with a definition, and where; nothing is made. */
  validate(definition: unknown): Promise<WorkflowProblems>;
  /**
   * Makes an instance and begins to drive it: a station does so until its end, another process as long as it lives.
   * Throws `invalid` with where the definition or the input is wrong, `too_large`; nothing is left behind then.
   */
  start(request: StartWorkflowInput, options?: { owner?: string }): Promise<WorkflowView>;
  /** Kept until a step takes it. Throws `conflict` for one that has ended. */
  signal(workflow: string, signal: SendSignal): Promise<WorkflowView>;
  /** Throws `not_found` when no step, or not this one, waits for an answer, `invalid` when several do. */
  approve(workflow: string, answer: AnswerApproval): Promise<WorkflowView>;
  /** Goes on with one that has failed, from the steps that failed. Throws `conflict` for any other. */
  retry(workflow: string, options: { by: string }): Promise<WorkflowView>;
}
