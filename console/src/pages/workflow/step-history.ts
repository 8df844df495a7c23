import type { EventFor } from "../../../../src/contract/event/event-family.ts";
import { type Handlers, handle } from "../../../../src/contract/event/handlers.ts";
import type { StepError, StepStatus, WorkflowEvent, workflowEvents } from "../../../../src/contract/workflow/workflow-event.ts";

/** One attempt of a step, collected from its events. */
export interface StepAttempt {
  attempt: number;
  /** The input; null if the step has none. */
  given: unknown;
  startedAt: string | null;
  endedAt: string | null;
  status: StepStatus | "running";
  output: unknown;
  error: StepError | null;
  child: string | null;
  retryAt: string | null;
  /** A person's answer. */
  answer: { approved: boolean; text: string; by: string } | null;
}

/** Returns the attempts of each step, by its path. */
export function historyOf(events: Iterable<WorkflowEvent>): ReadonlyMap<string, readonly StepAttempt[]> {
  const history = new Map<string, StepAttempt[]>();
  const tryOf = (path: string, attempt: number): StepAttempt => {
    const tries = history.get(path) ?? [];
    history.set(path, tries);
    const found = tries.findLast((each) => each.attempt === attempt);
    if (found !== undefined) return found;
    const newAttempt: StepAttempt = {
      ...{ attempt, given: null, startedAt: null, endedAt: null, status: "running", output: null },
      ...{ error: null, child: null, retryAt: null, answer: null },
    };
    tries.push(newAttempt);
    return newAttempt;
  };
  for (const event of events) handle(handlers, event, tryOf);
  return history;
}

const handlers: Handlers<EventFor<typeof workflowEvents, "console">, (path: string, attempt: number) => StepAttempt> = {
  "workflow.step_started": ({ at, data: { path, attempt, given: input } }, tryOf) => {
    Object.assign(tryOf(path, attempt), { given: input, startedAt: at });
  },
  "workflow.child_started": ({ data: { path, attempt, child } }, tryOf) => {
    tryOf(path, attempt).child = child;
  },
  "workflow.answered": ({ data }, tryOf) => {
    tryOf(data.path, data.attempt).answer = data;
  },
  "workflow.step_ended": ({ at, data: { path, attempt, status, output, error, retryAt } }, tryOf) => {
    Object.assign(tryOf(path, attempt), { status, output, error, retryAt, endedAt: at });
  },
};
