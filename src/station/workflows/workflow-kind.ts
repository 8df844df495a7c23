import { createHash } from "node:crypto";
import type { CaissonError } from "../../contract/error/error.ts";
import type { NewWorkflowEvent, OwnWorkflowEvent, StepError, StepStatus } from "../../contract/workflow/workflow-event.ts";
import { workflowEvents } from "../../contract/workflow/workflow-event.ts";
import { decideWorkflow } from "../../workflow/decide.ts";
import type { Evaluator } from "../../workflow/expressions/evaluate.ts";
import { applyToWorkflow, emptyWorkflow, type Json, type StepDone, type WorkflowState } from "../../workflow/state.ts";
import { type CleanEffect, retryAt, type StepEffect, type WorkflowEffect } from "../../workflow/turn.ts";
import type { EffectContext, Kind } from "../durable/kind.ts";
import { workflowKind } from "./workflow-names.ts";

/** The outcome of a step's effects. */
export interface StepOutcome {
  status: Exclude<StepStatus, "skipped">;
  output?: Json;
  error?: { code: string; text: string };
}

/** Performs the effects of steps of one kind. */
export interface StepWork {
  /** Returns the child's stream, which it creates or finds again, or an outcome if there is no child. */
  start?(effect: StepEffect, context: EffectContext): Promise<{ child: string } | StepOutcome>;
  /** Returns the outcome of a child that has ended, or ends it. */
  collect?(effect: StepEffect, context: EffectContext): Promise<StepOutcome>;
  perform?(effect: StepEffect, context: EffectContext): Promise<StepOutcome>;
  /** Releases the resources of an effect whose outcome is in the log. May add to that outcome. */
  leave?(effect: StepEffect, done: StepDone, context: EffectContext): Promise<StepOutcome>;
}

export interface WorkflowWork {
  /** Evaluates expressions. */
  evaluator: Evaluator;
  agent: StepWork;
  workflow: StepWork;
  command: StepWork;
  merge: StepWork;
  /** Removes what steps left behind: sandboxes, and the workspaces that go now. */
  clean(effect: CleanEffect, context: EffectContext): Promise<Cleaned>;
}

/** What was removed at the end of an instance. */
export type Cleaned = Extract<NewWorkflowEvent, { type: "workflow.cleaned" }>["data"];

export type WorkflowKind = Kind<WorkflowState, NewWorkflowEvent, WorkflowEffect>;

export function createWorkflowKind(work: WorkflowWork): WorkflowKind {
  return {
    ...workflowKind,
    events: workflowEvents,
    empty: emptyWorkflow,
    apply: (state, event) => applyToWorkflow(state, event as OwnWorkflowEvent),
    decide: async (state, look) => await decideWorkflow(state, look, work.evaluator),
    async perform(effect, context) {
      if (effect.do === "clean") return [{ type: "workflow.cleaned", data: await work.clean(effect, context) }];
      const { kind, path, attempt } = effect;
      if (effect.do === "start") {
        const started = await work[kind].start?.(effect, context);
        if (started !== undefined && "child" in started)
          return [{ type: "workflow.child_started", data: { path, attempt, child: started.child } }];
        return [stepEnded(effect, started ?? nothing)];
      }
      if (effect.do === "collect") return [stepEnded(effect, (await work[kind].collect?.(effect, context)) ?? nothing)];
      if (effect.do === "leave") {
        const done = effect.done ?? { status: "cancelled", output: null, error: null };
        return [stepEnded(effect, (await work[kind].leave?.(effect, done, context)) ?? nothing)];
      }
      const outcome = (await work[kind].perform?.(effect, context)) ?? nothing;
      // We release the sandbox only once this is in the log: until then, a repeated request finds the process there.
      if (sessionOfCommand(effect) === null || outcome.status === "cancelled") return [stepEnded(effect, outcome)];
      const { status, output = null, error = null } = outcome;
      return [{ type: "workflow.command_ended", data: { path, attempt, status, output, error: error && shortError(error) } }];
    },
    describeFailure: (effect, error) =>
      effect.do === "clean" ? [{ type: "workflow.cleaned", data: { sandboxes: 0 } }] : [stepEnded(effect, outcomeOf(effect, error))],
  };
}

const nothing: StepOutcome = { status: "failed", error: { code: "internal", text: "steps of this kind have no effect" } };

function outcomeOf({ cancel }: WorkflowEffect, { code, sentences }: CaissonError): StepOutcome {
  return cancel === true ? { status: "cancelled" } : { status: "failed", error: { code, text: sentences } };
}

/** Returns the event for the outcome of one attempt. The step's settings decide whether it is retried. */
function stepEnded(effect: StepEffect, outcome: StepOutcome): NewWorkflowEvent {
  const { path, attempt, step, deadline } = effect;
  const isLate = outcome.status === "cancelled" && deadline !== null && Date.parse(deadline) <= Date.now();
  const error = isLate ? { code: "timeout", text: `${path} reached its time limit` } : (outcome.error ?? null);
  const status = isLate ? "failed" : outcome.status;
  const output = outcome.output ?? null;
  return {
    type: "workflow.step_ended",
    data: {
      path,
      attempt,
      status,
      output,
      error: error && shortError(error),
      retryAt: status === "failed" && error !== null ? retryAt(step, { attempt, code: error.code, now: new Date() }) : null,
      data: status === "completed" && step.result !== undefined ? { [step.result]: output } : {},
      signal: null,
    },
  };
}

const shortError = ({ code, text }: StepError): StepError => ({ code, text: text.slice(0, 4000) });

/** Returns the session that a command works in; null for one in the instance's shared sandbox. */
export function sessionOfCommand({ given: input }: Pick<StepEffect, "given">): string | null {
  return (input as { session?: string } | null)?.session ?? null;
}

/** Returns the same digest for the same effect in every process. */
export const digestOfEffect = (id: string): Buffer => createHash("sha256").update(id).digest();
