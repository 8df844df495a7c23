import { createHash } from "node:crypto";
import type { CaissonError } from "../../contract/error.ts";
import type { NewWorkflowEvent, OwnWorkflowEvent, StepError, StepStatus } from "../../contract/workflow-event.ts";
import { workflowEvents } from "../../contract/workflow-event.ts";
import { decideWorkflow } from "../../workflow/decide.ts";
import type { Evaluator } from "../../workflow/expressions/evaluate.ts";
import { applyToWorkflow, emptyWorkflow, type Json, type StepDone, type WorkflowState } from "../../workflow/state.ts";
import { retryAt, type StepEffect, type WorkflowEffect } from "../../workflow/turn.ts";
import type { EffectContext, Kind } from "../driven/kind.ts";
import { workflowKind } from "./workflow-names.ts";

/** How what a step does outside comes to its end. */
export interface StepOutcome {
  status: Exclude<StepStatus, "skipped">;
  output?: Json;
  error?: { code: string; text: string };
}

/** What is done outside for steps of one kind. */
export interface StepWork {
  /** The child's stream, made now or found again; or an outcome where there will be none. */
  start?(effect: StepEffect, context: EffectContext): Promise<{ child: string } | StepOutcome>;
  /** Of a child that is over, or that is to be ended. */
  collect?(effect: StepEffect, context: EffectContext): Promise<StepOutcome>;
  perform?(effect: StepEffect, context: EffectContext): Promise<StepOutcome>;
  /** Frees what an effect was performed in whose outcome is in the log; may add to that outcome. */
  leave?(effect: StepEffect, done: StepDone, context: EffectContext): Promise<StepOutcome>;
}

export interface WorkflowWork {
  /** Where expressions are evaluated. */
  evaluator: Evaluator;
  agent: StepWork;
  workflow: StepWork;
  command: StepWork;
  merge: StepWork;
  /** Removes what commands left behind. Resolves with how much that was. */
  clean(context: EffectContext): Promise<number>;
}

export type WorkflowKind = Kind<WorkflowState, NewWorkflowEvent, WorkflowEffect>;

export function createWorkflowKind(work: WorkflowWork): WorkflowKind {
  return {
    ...workflowKind,
    events: workflowEvents,
    empty: emptyWorkflow,
    apply: (state, event) => applyToWorkflow(state, event as OwnWorkflowEvent),
    decide: async (state, look) => await decideWorkflow(state, look, work.evaluator),
    async perform(effect, context) {
      if (effect.do === "clean") return [{ type: "workflow.cleaned", data: { sandboxes: await work.clean(context) } }];
      const { kind, path, attempt } = effect;
      if (effect.do === "start") {
        const started = await work[kind].start?.(effect, context);
        if (started !== undefined && "child" in started)
          return [{ type: "workflow.child_started", data: { path, attempt, child: started.child } }];
        return [ended(effect, started ?? nothing)];
      }
      if (effect.do === "collect") return [ended(effect, (await work[kind].collect?.(effect, context)) ?? nothing)];
      if (effect.do === "leave") {
        const done = effect.done ?? { status: "cancelled", output: null, error: null };
        return [ended(effect, (await work[kind].leave?.(effect, done, context)) ?? nothing)];
      }
      const outcome = (await work[kind].perform?.(effect, context)) ?? nothing;
      // What it was done in is left once this is in the log: until then whoever asks again finds it there.
      if (sessionOfCommand(effect) === null || outcome.status === "cancelled") return [ended(effect, outcome)];
      const { status, output = null, error = null } = outcome;
      return [{ type: "workflow.command_ended", data: { path, attempt, status, output, error: error && shortError(error) } }];
    },
    failed: (effect, error) =>
      effect.do === "clean" ? [{ type: "workflow.cleaned", data: { sandboxes: 0 } }] : [ended(effect, outcomeOf(effect, error))],
  };
}

const nothing: StepOutcome = { status: "failed", error: { code: "internal", text: "nothing is done for a step of this kind" } };

function outcomeOf({ cancel }: WorkflowEffect, { code, sentences }: CaissonError): StepOutcome {
  return cancel === true ? { status: "cancelled" } : { status: "failed", error: { code, text: sentences } };
}

/** What one attempt of a step came to; whether it is tried again is decided with the step's settings. */
function ended(effect: StepEffect, outcome: StepOutcome): NewWorkflowEvent {
  const { path, attempt, step, deadline } = effect;
  const isLate = outcome.status === "cancelled" && deadline !== null && Date.parse(deadline) <= Date.now();
  const error = isLate ? { code: "timeout", text: `the time of ${path} was over` } : (outcome.error ?? null);
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

/** The session that a command is to work in; null for one in the sandbox that all others share. */
export function sessionOfCommand({ given }: Pick<StepEffect, "given">): string | null {
  return (given as { session?: string } | null)?.session ?? null;
}

/** The same for the same effect, in whatever process. */
export const digestOfEffect = (id: string): Buffer => createHash("sha256").update(id).digest();
