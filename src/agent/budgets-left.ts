import type { RunState } from "./run-state.ts";

/** What a run may still spend, never below zero; null where nothing bounds it. A cost that is not known counts as none. */
export function budgetsLeft(state: RunState): { costUsd: number | null; tokens: number | null; timeMs: number } {
  const { costUsd, tokens, timeMs = state.definition.harness.timeoutMs } = state.budgets;
  const used = state.usage.inputTokens + state.usage.outputTokens;
  return {
    costUsd: costUsd === undefined ? null : Math.max(0, costUsd - (state.costUsd ?? 0)),
    tokens: tokens === undefined ? null : Math.max(0, tokens - used),
    timeMs: Math.max(0, timeMs - state.workedMs),
  };
}
