import { CaissonError } from "../../contract/error/error.ts";
import { foldStepEnds, noStepEnds, type StepEnds, stepEndTypes } from "../../contract/run/step-ends.ts";
import type { Log } from "../../log/log.ts";
import { readPages } from "../../log/read-pages.ts";
import { parseRunEvent } from "../runs/owned-journal.ts";
import { headOfRun } from "../vocabulary/head-of-run.ts";
import { runStream } from "../vocabulary/station-names.ts";

/** The end of a step: the number of steps, and the last event that belongs to them. */
export interface StepEnd {
  step: number;
  seq: number;
}

/**
 * Returns the end of a step of a run; by default of the last that finished. Throws `not_found` for a step that the run
 * has not taken or that was rewound, `conflict` for one that has not finished, and `not_found` for an unknown run.
 */
export async function stepEnd(log: Log, run: string, step: number | undefined): Promise<StepEnd> {
  const steps = await readStepEnds(log, run);
  if (step === undefined) return lastEnd(steps);
  const seq = steps.ends[step];
  if (seq === undefined) {
    throw new CaissonError("not_found", `the run ${run} has no step ${step}`, {
      hint: steps.begun === 0 ? "It has taken none; 0 means before the first." : `It has taken ${steps.begun}; 0 means before the first.`,
      details: { steps: steps.begun },
    });
  }
  if (seq === null) {
    throw new CaissonError("conflict", `step ${step} of the run ${run} has not finished`, {
      hint: `The last finished one is ${lastEnd(steps).step}.`,
      details: { steps: lastEnd(steps).step },
    });
  }
  return { step, seq };
}

/** Returns where the steps of a run end. */
export async function readStepEnds(log: Log, run: string): Promise<StepEnds> {
  const steps = noStepEnds();
  // Throws for an unknown run.
  if ((await log.lastSeq(runStream(run))) === 0) await headOfRun(log, run);
  for await (const page of readPages(log, runStream(run))) {
    for (const stored of page) {
      const isRead = stored.damage !== undefined || stepEndTypes.has(stored.type);
      if (isRead) foldStepEnds(steps, { ...parseRunEvent(stored), seq: stored.seq });
    }
  }
  return steps;
}

function lastEnd({ ends }: StepEnds): StepEnd {
  const step = ends.findLastIndex((seq) => typeof seq === "number");
  return { step: Math.max(0, step), seq: ends[step] ?? 1 };
}
