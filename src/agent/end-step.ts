import { CaissonError } from "../contract/error/error.ts";
import type { Journal } from "./journal.ts";
import type { RunState } from "./run-state.ts";

/** The files after a step. */
export interface StepFiles {
  /** The point at which they are stored. */
  point: string | null;
  hasChanged: boolean;
  files: number;
  bytes: number;
}

/** Stores the files after a step. Null if that is not possible here. `mayDiffer` is false if only reading tools ran. */
export type StoreStep = (step: number, how: { mayDiffer: boolean }) => Promise<StepFiles | null>;

export interface StepEnds {
  /** Notes that a tool may have changed files. */
  noteTool(): void;
  /** Stores the files of the last step and records its end, unless that has happened. */
  end(): Promise<void>;
}

const PROBLEM_CHARACTERS_MAX = 2000;

/** Tracks the steps of a run. A step's files are stored after its tools and before those of the next step. */
export function createStepEnds(journal: Journal, store: StoreStep): StepEnds {
  // A process that takes a run over does not know what the tools before it did.
  let mayDiffer = true;
  let lastProblem: string | undefined;
  return {
    noteTool() {
      mayDiffer = true;
    },
    async end() {
      const { state } = journal;
      const step = lastStep(state);
      if (step <= state.stepEnded) return;
      const costUsd = state.costUsd === null ? null : Math.max(0, state.costUsd - state.costAtStepEnd);
      const { files, problem } = await storeFiles(() => store(step, { mayDiffer }));
      if (problem === undefined) mayDiffer = false;
      const about = files ?? { point: null, hasChanged: false, files: 0, bytes: 0 };
      const isNews = problem !== undefined && problem !== lastProblem;
      lastProblem = problem;
      await journal.append([{ type: "step.ended", data: { step, ...about, costUsd, ...(isNews && { problem }) } }]);
    },
  };
}

/** Returns the last step whose tools have ended, if those of the next one have not begun. */
function lastStep({ step, openCall }: RunState): number {
  return openCall === null ? step : step - 1;
}

async function storeFiles(store: () => Promise<StepFiles | null>): Promise<{ files: StepFiles | null; problem?: string }> {
  try {
    return { files: await store() };
  } catch (error) {
    if (!(error instanceof CaissonError)) throw error;
    return { files: null, problem: error.message.slice(0, PROBLEM_CHARACTERS_MAX) };
  }
}
