import type { BestBudgets, BestEvent, BestSource, bestEvents } from "../../contract/best/best-event.ts";
import type { BestAttemptView } from "../../contract/best/best-verbs.ts";
import type { EventFor } from "../../contract/event/event-family.ts";
import { type Handlers, handle } from "../../contract/event/handlers.ts";
import type { Budgets } from "../../contract/run/run.ts";
import type { ReadKindEvent } from "../durable/kind.ts";

/** One attempt, as far as it has got. */
export interface AttemptState extends Omit<BestAttemptView, "place" | "why"> {
  /** Its share of the budget. */
  budgets: Budgets;
  tokens: number;
}

/** The state of a best-of, folded from its events. */
export interface BestState {
  source: BestSource;
  task: string;
  models: readonly string[];
  grade: string | null;
  gradeTimeoutMs: number;
  judge: string | null;
  concurrency: number;
  budgets: BestBudgets;
  attempts: AttemptState[];
  judging: "no" | "started" | "done";
  judgeCostUsd: number | null;
  /** The attempt whose promotion was started. */
  promoting: number | null;
  winner: { attempt: number; run: string; session: string } | null;
  failure: { code: string; text: string } | null;
}

export const emptyBest = (): BestState => ({
  source: { kind: "task", start: null },
  task: "",
  models: [],
  grade: null,
  gradeTimeoutMs: 1,
  judge: null,
  concurrency: 1,
  budgets: {},
  attempts: [],
  judging: "no",
  judgeCostUsd: 0,
  promoting: null,
  winner: null,
  failure: null,
});

export function applyToBest(state: BestState, event: ReadKindEvent): void {
  handle(handlers, event, state);
}

type EventOf<Type extends BestEvent["type"]> = Extract<BestEvent, { type: Type }>;

const handlers: Handlers<EventFor<typeof bestEvents, "state">, BestState> = {
  "best.begun": ({ data: { attempts, ...about } }, state) => {
    Object.assign(state, about);
    state.attempts = Array.from({ length: attempts }, (_, index) => waiting(index + 1));
  },
  "best.attempt_started": ({ data: { attempt, ...about } }, state) => change(state, attempt, { status: "starting", ...about }),
  "best.attempted": ({ data: { attempt, ...about } }, state) => change(state, attempt, { status: "running", ...about }),
  "best.attempt_ended": ({ data: { attempt, ...about } }, state) => change(state, attempt, { status: "ended", ...about }),
  "best.attempt_failed": ({ data: { attempt, text } }, state) => change(state, attempt, { status: "failed", text }),
  "best.grade_started": ({ data: { attempt } }, state) => change(state, attempt, { status: "grading" }),
  "best.graded": ({ data: { attempt, ...grade } }, state) => change(state, attempt, { status: "graded", grade }),
  "best.judge_started": (_, state) => {
    state.judging = "started";
  },
  "best.judged": applyJudgement,
  "best.promote_started": ({ data }, state) => {
    state.promoting = data.attempt;
  },
  "best.promoted": ({ data }, state) => {
    state.winner = data;
  },
  "best.failed": ({ data }, state) => {
    state.failure = data;
  },
};

const waiting = (attempt: number): AttemptState => ({
  attempt,
  status: "waiting",
  model: null,
  run: null,
  session: null,
  finish: null,
  steps: 0,
  costUsd: 0,
  workedMs: 0,
  grade: null,
  opinion: null,
  text: null,
  budgets: {},
  tokens: 0,
});

function change(state: BestState, attempt: number, to: Partial<AttemptState>): void {
  state.attempts = state.attempts.map((each) => (each.attempt === attempt ? { ...each, ...to } : each));
}

function applyJudgement({ data: { opinions, costUsd } }: EventOf<"best.judged">, state: BestState): void {
  state.judging = "done";
  state.judgeCostUsd = costUsd;
  for (const { attempt, ...opinion } of opinions ?? []) change(state, attempt, { opinion });
}
