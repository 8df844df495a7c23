import type { WorkflowStep } from "../contract/workflow/workflow.ts";
import type { StepState } from "./state.ts";
import { type Frame, prefixIn, type Result, type Turn } from "./turn.ts";

/** A started step: its path and state, and the function that runs lists of steps within it. */
export interface Place {
  path: string;
  frame: Frame;
  state: StepState;
  runSequence: (turn: Turn, frame: Frame) => Result;
}

/** Runs a list of steps within a step. */
export function inside(
  turn: Turn,
  { path, frame, state, runSequence }: Place,
  {
    name,
    steps,
    names = {},
    isCancelling = frame.isCancelling,
  }: { name: string; steps: readonly WorkflowStep[]; names?: Frame["names"]; isCancelling?: boolean },
): Result {
  return runSequence(turn, { prefix: `${prefixIn(path, state)}${name}/`, steps, outer: frame, names, isCancelling });
}

/** Returns whether the first step of a list within a step has begun. */
export function hasBegun(turn: Turn, { path, state }: Place, { name, steps }: { name: string; steps: readonly WorkflowStep[] }): boolean {
  return turn.state.steps.has(`${prefixIn(path, state)}${name}/${steps[0]?.name}`);
}
