import { z } from "zod";
import { LongText } from "../bounded.ts";
import { JobView } from "../durable/durable-job.ts";
import { RunId, SessionId } from "../ids.ts";
import { FinishReason } from "../outcome.ts";
import { StartRun } from "../run/run-verbs.ts";
import { ATTEMPTS_MAX, BestBudgets } from "./best-event.ts";

/** Arguments and answers of the station's verbs for best-ofs. */

const ModelText = z.string().min(1).max(500);
const CONCURRENCY_MAX = 16;
const GRADE_MS_MAX = 4 * 60 * 60_000;

/** A run as each attempt starts it. The best-of itself names, labels and bounds it. */
export const AttemptRun = StartRun.omit({
  name: true,
  session: true,
  from: true,
  traceparent: true,
  record: true,
  replay: true,
  attended: true,
  detached: true,
  priority: true,
  startAt: true,
});
export type AttemptRun = z.infer<typeof AttemptRun>;

export const StartBest = z
  .strictObject({
    /** The task of each attempt, which starts without a conversation. */
    start: AttemptRun.optional(),
    /** Instead: the run that each attempt forks, after a step (default: its last), with a further message. */
    run: z
      .strictObject({ run: z.string().min(1).max(256), step: z.int().nonnegative().max(1_000_000).optional(), send: LongText.optional() })
      .optional(),
    attempts: z.int().min(1).max(ATTEMPTS_MAX).default(4),
    /** The attempts take turns with these models. */
    models: z.array(ModelText).max(ATTEMPTS_MAX).default([]),
    /** A shell command that runs on a copy of each attempt's files: it passes with exit code 0. */
    grade: LongText.min(1).optional(),
    gradeTimeoutMs: z.int().min(1000).max(GRADE_MS_MAX).default(600_000),
    /** A model that compares the attempts. */
    judge: ModelText.optional(),
    /** How many attempts run or are graded at the same time. */
    concurrency: z.int().min(1).max(CONCURRENCY_MAX).default(2),
    /** For all attempts and the judge together. */
    budgets: BestBudgets.default({}),
  })
  .refine(({ start, run }) => (start === undefined) !== (run === undefined), "needs either a task or a run");
export type StartBest = z.input<typeof StartBest>;

export const BestAttemptView = z.object({
  attempt: z.int().positive(),
  /** `waiting`: not begun. */
  status: z.enum(["waiting", "starting", "running", "ended", "grading", "graded", "failed"]),
  model: z.string().nullable(),
  run: RunId.nullable(),
  session: SessionId.nullable(),
  finish: FinishReason.nullable(),
  steps: z.int().nonnegative(),
  costUsd: z.number().nullable(),
  workedMs: z.number().nonnegative(),
  /** What the grader said. */
  grade: z.object({ isPassed: z.boolean(), exitCode: z.int().nullable(), score: z.number().nullable(), text: z.string() }).nullable(),
  /** What the judge said. */
  opinion: z.object({ score: z.number(), why: z.string() }).nullable(),
  /** Why it failed. */
  text: z.string().nullable(),
  /** Its place among the attempts, once all are over, and what decided it. */
  place: z.int().positive().nullable(),
  why: z.string(),
});
export type BestAttemptView = z.infer<typeof BestAttemptView>;

/** A best-of with all its details. */
export const BestView = JobView.extend({
  task: z.string(),
  /** In order of their places, then of their numbers. */
  attempts: z.array(BestAttemptView),
  grade: z.string().nullable(),
  judge: z.string().nullable(),
  concurrency: z.int().positive(),
  budgets: BestBudgets,
  /** What the attempts and the judge cost so far; null if a price is unknown. */
  costUsd: z.number().nullable(),
  /** The promoted attempt. */
  winner: z.object({ attempt: z.int().positive(), run: RunId, session: SessionId }).nullable(),
});
export type BestView = z.infer<typeof BestView>;
