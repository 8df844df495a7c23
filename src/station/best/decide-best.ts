import type { NewBestEvent } from "../../contract/best/best-event.ts";
import type { JobFacts } from "../../contract/durable/durable-job.ts";
import type { Effect, JobDecision } from "../durable/kind.ts";
import { isSpent, shareOfNext } from "./best-budget.ts";
import type { AttemptState, BestState } from "./best-state.ts";
import { type Rank, rankAttempts } from "./rank-attempts.ts";

/** Work that a best-of does outside the log, with all data that the work needs. */
export interface BestEffect extends Effect {
  what: "start" | "watch" | "grade" | "judge" | "promote";
  attempt: AttemptState | null;
  state: Readonly<BestState>;
}

type Decision = JobDecision<NewBestEvent, BestEffect>;

/** Decides what follows from the state of a best-of. Pure. */
export function decideBest(state: BestState, { facts }: { facts: Readonly<JobFacts> }): Decision {
  const effects = effectsOf(facts.id, state);
  if (facts.cancelRequested !== null) {
    if (effects.length > 0) return { effects: effects.map((effect) => ({ ...effect, cancel: true })) };
    return { end: { finish: "cancelled", text: null } };
  }
  if (state.failure !== null) return { end: { finish: "failed", text: state.failure.text } };
  if (state.winner !== null) return { end: { finish: "completed", text: `Attempt ${state.winner.attempt}: ${state.winner.run}` } };
  const started = nextToStart(state);
  if (started !== null) return { append: [started] };
  if (effects.length > 0) return { effects };
  return afterAttempts(state);
}

/** Starts a grading before an attempt, so that results come early. */
function nextToStart(state: BestState): NewBestEvent | null {
  const { attempts, concurrency, grade } = state;
  const active = attempts.filter(({ status }) => status === "starting" || status === "running" || status === "grading");
  if (active.length >= concurrency) return null;
  const ungraded = attempts.find(({ status }) => status === "ended");
  if (grade !== null && ungraded !== undefined) return { type: "best.grade_started", data: { attempt: ungraded.attempt } };
  const next = attempts.find(({ status }) => status === "waiting");
  if (next === undefined) return null;
  const budgets = shareOfNext(state);
  if (budgets === null) return { type: "best.attempt_failed", data: { attempt: next.attempt, text: "The budget is used up." } };
  const { models } = state;
  const model = models.length === 0 ? null : (models[(next.attempt - 1) % models.length] ?? null);
  return { type: "best.attempt_started", data: { attempt: next.attempt, model, budgets } };
}

function afterAttempts(state: BestState): Decision {
  const { judge, judging, grade } = state;
  const candidates = candidatesOf(state);
  if (judge !== null && judging === "no" && candidates.length > 1) {
    const unheard = { opinions: null, costUsd: 0, text: "The budget is used up, so the judge was not asked." };
    return { append: [isSpent(state) ? { type: "best.judged", data: unheard } : { type: "best.judge_started", data: {} }] };
  }
  const [first] = rankOf(state);
  const winner = candidates.find(({ attempt }) => attempt === first?.attempt);
  if (winner !== undefined && isPassed(winner)) return { append: [{ type: "best.promote_started", data: { attempt: winner.attempt } }] };
  const text = grade === null ? "No attempt was done." : "No attempt passes the grader.";
  return { append: [{ type: "best.failed", data: { code: "conflict", text } }] };
}

/** The attempts with a result. */
export const candidatesOf = ({ attempts }: Pick<BestState, "attempts">): AttemptState[] =>
  attempts.filter(({ status, run, session }) => (status === "ended" || status === "graded") && run !== null && session !== null);

/** Ranks the attempts that have a result. */
export function rankOf(state: Pick<BestState, "attempts">): Rank[] {
  return rankAttempts(
    candidatesOf(state).map((attempt) => ({
      ...attempt,
      isPassed: isPassed(attempt),
      score: attempt.grade?.score ?? null,
      judged: attempt.opinion?.score ?? null,
    })),
  );
}

const isPassed = ({ grade, finish }: AttemptState) => (grade === null ? finish === "done" : grade.isPassed);

/** Returns the work in progress, with the same ids in every process. */
function effectsOf(id: string, state: BestState): BestEffect[] {
  const ofAttempts = state.attempts.flatMap((attempt): BestEffect[] => {
    const { status, attempt: number, run } = attempt;
    if (status === "starting") return [{ id: `${id}/start/${number}`, what: "start", attempt, state }];
    if (status === "running") return [{ id: `${id}/watch/${number}`, what: "watch", attempt, state, after: `run/${run}` }];
    return status === "grading" ? [{ id: `${id}/grade/${number}`, what: "grade", attempt, state }] : [];
  });
  if (state.judging === "started") ofAttempts.push({ id: `${id}/judge`, what: "judge", attempt: null, state });
  const winner = state.winner === null ? state.attempts.find(({ attempt }) => attempt === state.promoting) : undefined;
  if (winner !== undefined) ofAttempts.push({ id: `${id}/promote/${winner.attempt}`, what: "promote", attempt: winner, state });
  return ofAttempts;
}
