import type { Budgets } from "../contract/run/run.ts";
import type { RunFacts } from "../contract/run/run-facts.ts";

const RAISED_BY = 1.5;

/**
 * Returns what a run may still spend, never below zero; null where there is no limit. An unknown cost counts as zero.
 */
export function budgetsLeft(facts: RunFacts): { costUsd: number | null; tokens: number | null; timeMs: number } {
  const { costUsd, tokens, timeMs } = facts.budgets;
  const spent = spentBy(facts);
  return {
    costUsd: costUsd === undefined ? null : Math.max(0, costUsd - spent.costUsd),
    tokens: tokens === undefined ? null : Math.max(0, tokens - spent.tokens),
    timeMs: Math.max(0, (timeMs ?? facts.bounds.timeMs) - spent.timeMs),
  };
}

/**
 * Returns limits for a run that may spend what this one has left. A limit must be above zero, so an exhausted one
 * becomes a tiny one.
 */
export function budgetsFromLeft(facts: RunFacts): Budgets {
  const { costUsd, tokens, timeMs } = budgetsLeft(facts);
  return {
    ...(costUsd === null ? {} : { costUsd: Math.max(0.000001, costUsd) }),
    ...(tokens === null ? {} : { tokens: Math.max(1, tokens) }),
    timeMs: Math.max(1, Math.round(timeMs)),
  };
}

/** Returns each limit times 1.5, or 1.5 times the amount spent if that is higher. */
export function raisedBudgets(facts: RunFacts): Budgets {
  const { steps, timeMs, tokens, costUsd } = facts.budgets;
  const spent = spentBy(facts);
  return {
    steps: Math.ceil(Math.max(facts.step, steps ?? facts.bounds.steps) * RAISED_BY),
    timeMs: Math.ceil(Math.max(spent.timeMs, timeMs ?? facts.bounds.timeMs) * RAISED_BY),
    ...(tokens === undefined ? {} : { tokens: Math.ceil(Math.max(spent.tokens, tokens) * RAISED_BY) }),
    ...(costUsd === undefined ? {} : { costUsd: Math.max(spent.costUsd, costUsd) * RAISED_BY }),
  };
}

/**
 * Returns limits for a whole run that leave it this much more to spend. Missing limits on steps and time default to the
 * agent's limits for a run.
 */
export function onTopOfSpent(more: Budgets, facts: RunFacts): Budgets {
  const spent = spentBy(facts);
  return {
    steps: facts.step + (more.steps ?? facts.bounds.steps),
    timeMs: Math.ceil(spent.timeMs) + (more.timeMs ?? facts.bounds.timeMs),
    ...(more.tokens === undefined ? {} : { tokens: spent.tokens + more.tokens }),
    ...(more.costUsd === undefined ? {} : { costUsd: spent.costUsd + more.costUsd }),
  };
}

function spentBy({ usage, costUsd, workedMs }: RunFacts): { costUsd: number; tokens: number; timeMs: number } {
  return { costUsd: costUsd ?? 0, tokens: usage.inputTokens + usage.outputTokens, timeMs: workedMs };
}
