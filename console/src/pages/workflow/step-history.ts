import { isDrivenEvent } from "../../../../src/contract/is-driven-event.ts";
import type { StepError, StepStatus, WorkflowEvent } from "../../../../src/contract/workflow-event.ts";

/** One try of a step, as its events tell it. */
export interface StepAttempt {
  attempt: number;
  /** What it was given; null for one that is given nothing. */
  given: unknown;
  startedAt: string | null;
  endedAt: string | null;
  status: StepStatus | "running";
  output: unknown;
  error: StepError | null;
  child: string | null;
  retryAt: string | null;
  /** What a person said. */
  answer: { approved: boolean; text: string; by: string } | null;
}

/** The tries of each step, by its path. */
export function historyOf(events: Iterable<WorkflowEvent>): ReadonlyMap<string, readonly StepAttempt[]> {
  const history = new Map<string, StepAttempt[]>();
  const tryOf = (path: string, attempt: number): StepAttempt => {
    const tries = history.get(path) ?? [];
    history.set(path, tries);
    const found = tries.findLast((each) => each.attempt === attempt);
    if (found !== undefined) return found;
    const made: StepAttempt = {
      ...{ attempt, given: null, startedAt: null, endedAt: null, status: "running", output: null },
      ...{ error: null, child: null, retryAt: null, answer: null },
    };
    tries.push(made);
    return made;
  };
  for (const event of events) {
    if (isDrivenEvent(event)) continue;
    switch (event.type) {
      case "workflow.step_started":
        Object.assign(tryOf(event.data.path, event.data.attempt), { given: event.data.given, startedAt: event.at });
        break;
      case "workflow.child_started":
        tryOf(event.data.path, event.data.attempt).child = event.data.child;
        break;
      case "workflow.answered":
        tryOf(event.data.path, event.data.attempt).answer = event.data;
        break;
      case "workflow.step_ended": {
        const { path, attempt, status, output, error, retryAt } = event.data;
        Object.assign(tryOf(path, attempt), { status, output, error, retryAt, endedAt: event.at });
        break;
      }
      case "workflow.defined":
      case "workflow.passed_over":
      case "workflow.summed_up":
      case "workflow.command_ended":
      case "workflow.cancelling":
      case "workflow.signalled":
      case "workflow.retried":
      case "workflow.cleaned":
        break;
      default:
        // A new event does not compile until it is named above.
        event satisfies never;
    }
  }
  return history;
}
