import { z } from "zod";
import { jobFamily } from "../durable/durable-event.ts";
import { concerns, defineEvent } from "../event/define-event.ts";
import type { NewEventOf } from "../event/event-family.ts";
import { RunId, SessionId } from "../ids.ts";
import { JsonValue } from "../json-value.ts";
import { FinishReason } from "../outcome.ts";
import { Budgets } from "../run/run.ts";

/**
 * The events of a best-of, in the stream `best/<id>`, in addition to those of all durable jobs. It makes several
 * attempts at one task, each a run, grades them and promotes the winner.
 */

export const ATTEMPTS_MAX = 32;
const TEXT_CHARACTERS_MAX = 4000;
const Attempt = z.int().positive().max(ATTEMPTS_MAX);
const ShortText = z.string().max(TEXT_CHARACTERS_MAX);

/** Where the attempts begin: with a task, or as forks of a run after a step. */
export const BestSource = z.discriminatedUnion("kind", [
  z.object({ kind: z.literal("task"), start: JsonValue }),
  z.object({ kind: z.literal("run"), run: RunId, step: z.int().nonnegative().nullable(), send: z.string().nullable() }),
]);
export type BestSource = z.infer<typeof BestSource>;

/** The limits of all attempts and the judge together. */
export const BestBudgets = z.strictObject({ costUsd: z.number().positive().optional(), tokens: z.int().positive().optional() });
export type BestBudgets = z.infer<typeof BestBudgets>;

export const BestBegun = defineEvent("best.begun", 1, concerns("state"), {
  source: BestSource,
  /** The task, shortened. */
  task: z.string(),
  attempts: Attempt,
  /** The attempts take turns with them. Empty: the usual model. */
  models: z.array(z.string()).max(ATTEMPTS_MAX),
  /** The grader's shell command, or null. */
  grade: z.string().nullable(),
  gradeTimeoutMs: z.int().positive(),
  /** The judge's model, or null. */
  judge: z.string().nullable(),
  concurrency: z.int().positive(),
  budgets: BestBudgets,
});
export const BestAttemptStarted = defineEvent("best.attempt_started", 1, concerns("state", "terminal"), {
  attempt: Attempt,
  model: z.string().nullable(),
  /** Its share of what is left. */
  budgets: Budgets,
});
export const BestAttempted = defineEvent("best.attempted", 1, concerns("state", "terminal"), {
  attempt: Attempt,
  run: RunId,
  session: SessionId,
});
export const BestAttemptEnded = defineEvent("best.attempt_ended", 1, concerns("state", "terminal"), {
  attempt: Attempt,
  finish: FinishReason,
  steps: z.int().nonnegative(),
  tokens: z.int().nonnegative(),
  costUsd: z.number().nullable(),
  workedMs: z.number().nonnegative(),
});
/** The attempt has no run, or cannot be graded. */
export const BestAttemptFailed = defineEvent("best.attempt_failed", 1, concerns("state", "terminal"), {
  attempt: Attempt,
  text: ShortText,
});
export const BestGradeStarted = defineEvent("best.grade_started", 1, concerns("state"), { attempt: Attempt });
export const BestGraded = defineEvent("best.graded", 1, concerns("state", "terminal"), {
  attempt: Attempt,
  isPassed: z.boolean(),
  /** Null if the grader did not exit by itself. */
  exitCode: z.int().nullable(),
  score: z.number().nullable(),
  /** The end of its output. */
  text: ShortText,
});
export const BestJudgeStarted = defineEvent("best.judge_started", 1, concerns("state"), {});
export const BestJudged = defineEvent("best.judged", 1, concerns("state", "terminal"), {
  /** Null if the judge gave no usable answer. */
  opinions: z
    .array(z.object({ attempt: Attempt, score: z.number().min(0).max(1), why: ShortText }))
    .max(ATTEMPTS_MAX)
    .nullable(),
  costUsd: z.number().nullable(),
  /** Why there is no answer. */
  text: ShortText.nullable(),
});
export const BestPromoteStarted = defineEvent("best.promote_started", 1, concerns("state"), { attempt: Attempt });
/** The attempt's session is the result. */
export const BestPromoted = defineEvent("best.promoted", 1, concerns("state", "terminal"), {
  attempt: Attempt,
  run: RunId,
  session: SessionId,
});
export const BestFailed = defineEvent("best.failed", 1, concerns("state"), { code: z.string(), text: ShortText });

const all = [
  BestBegun,
  BestAttemptStarted,
  BestAttempted,
  BestAttemptEnded,
  BestAttemptFailed,
  BestGradeStarted,
  BestGraded,
  BestJudgeStarted,
  BestJudged,
  BestPromoteStarted,
  BestPromoted,
  BestFailed,
] as const;
export const BestEvent = z.discriminatedUnion("type", all);
export type BestEvent = z.infer<typeof BestEvent>;
export type NewBestEvent = NewEventOf<BestEvent>;
export const bestEvents = jobFamily(all);
