import type { RunEvent } from "./run-event.ts";

/**
 * Where the steps of a run end in its log. `RUN@3` is the run up to `ends[3]`: the answer of the third step and the
 * results of all its calls, and nothing that came later. `RUN@0` ends before the first model call.
 */
export interface StepEnds {
  /** The sequence number of the last event of each step; null for a step that did not finish. */
  readonly ends: (number | null)[];
  /** The number of steps begun. */
  begun: number;
  /** The calls of the current step that have not ended; null before its answer. */
  open: Set<string> | null;
}

export function noStepEnds(): StepEnds {
  return { ends: [], begun: 0, open: null };
}

/** Events of a step that may follow the end of its last call. A set of texts, since new ones need no other change. */
const closing: ReadonlySet<string> = new Set(["file.changed", "todo.changed", "step.ended"]);

/** The types of the events that `foldStepEnds` needs; it ignores all others. */
export const stepEndTypes: ReadonlySet<string> = new Set([
  ...["run.created", "run.forked", "run.reopened", "run.rewound", "step.started", "model.ended", "tool.ended"],
  ...closing,
]);

/** Adds one event, in place. This is the only definition of where a step ends. */
export function foldStepEnds(steps: StepEnds, event: RunEvent & { seq: number }): void {
  const { ends, begun } = steps;
  const { seq } = event;
  if (event.type === "run.created") ends[0] = seq;
  else if (event.type === "step.started") {
    if (event.data.step === 1) ends[0] = seq - 1;
    steps.begun = event.data.step;
    ends[steps.begun] = null;
    steps.open = null;
  } else if (event.type === "model.ended") {
    steps.open = new Set(event.data.parts.flatMap((part) => (part.kind === "toolCall" ? [part.call] : [])));
    if (steps.open.size === 0) ends[begun] = seq;
  } else if (event.type === "tool.ended") {
    if (steps.open?.delete(event.data.call) === true && steps.open.size === 0) ends[begun] = seq;
  } else if (closing.has(event.type)) {
    if (steps.open?.size === 0 && begun > 0) ends[begun] = seq;
  } else if (event.type === "run.rewound") {
    steps.begun = event.data.toStep;
    ends.splice(steps.begun + 1);
    steps.open = null;
  } else if (event.type === "run.forked" || event.type === "run.reopened") {
    // What comes now is another turn, but calls that were abandoned still end.
    if (steps.open?.size === 0) steps.open = null;
  }
}
