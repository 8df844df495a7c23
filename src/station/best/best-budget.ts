import type { Budgets } from "../../contract/run/run.ts";
import type { AttemptState, BestState } from "./best-state.ts";

/** A smaller share would end a run before its first step. */
const TOKENS_MIN = 1;

/**
 * Returns the share of the next attempt: what is neither spent nor promised to another one, divided by the attempts
 * that have not begun. Null if nothing is left. An attempt whose price is unknown counts with its whole share.
 */
export function shareOfNext({ budgets, attempts }: Pick<BestState, "budgets" | "attempts">): Budgets | null {
  const count = attempts.filter(({ status }) => status === "waiting").length;
  const share: Budgets = {};
  if (budgets.costUsd !== undefined) {
    const left =
      budgets.costUsd -
      sum(attempts, (attempt) => (isOver(attempt) ? (attempt.costUsd ?? promised(attempt).costUsd) : promised(attempt).costUsd));
    if (left <= 0 || count === 0) return null;
    share.costUsd = left / count;
  }
  if (budgets.tokens !== undefined) {
    const left = budgets.tokens - sum(attempts, (attempt) => (isOver(attempt) ? attempt.tokens : promised(attempt).tokens));
    const tokens = Math.floor(left / Math.max(1, count));
    if (tokens < TOKENS_MIN) return null;
    share.tokens = tokens;
  }
  return share;
}

/** Returns whether nothing is left for the judge. */
export function isSpent({ budgets, attempts }: Pick<BestState, "budgets" | "attempts">): boolean {
  const { costUsd, tokens } = budgets;
  return (
    (costUsd !== undefined && sum(attempts, (attempt) => attempt.costUsd ?? promised(attempt).costUsd) >= costUsd) ||
    (tokens !== undefined && sum(attempts, (attempt) => attempt.tokens) >= tokens)
  );
}

const promised = ({ budgets: { costUsd = 0, tokens = 0 } }: AttemptState) => ({ costUsd, tokens });
const isOver = ({ finish }: AttemptState) => finish !== null;
const sum = (attempts: readonly AttemptState[], of: (attempt: AttemptState) => number) =>
  attempts.reduce((total, attempt) => total + of(attempt), 0);

/** Returns the lower of each of two limits. */
export function lowerBudgets(one: Budgets, other: Budgets): Budgets {
  const names = ["costUsd", "tokens", "steps", "timeMs"] as const;
  return Object.fromEntries(
    names.flatMap((name) => {
      const limits = [one[name], other[name]].filter((limit) => limit !== undefined);
      return limits.length === 0 ? [] : [[name, Math.min(...limits)]];
    }),
  );
}
