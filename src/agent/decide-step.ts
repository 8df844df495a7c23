import type { FinishReason } from "../contract/outcome.ts";
import { isAtFork } from "../contract/run/run-facts.ts";
import { unreachable } from "../lib/unreachable.ts";
import { type Noticed, noticeLoop } from "./doom-loop.ts";
import type { RunState } from "./run-state.ts";
import type { ToolCallState } from "./tool-call-state.ts";

export type BudgetKind = "steps" | "time" | "tokens" | "cost";

/** The next thing to do. A pure function of the state: a crash does not change the decision. */
export type StepDecision =
  | { kind: "end"; reason: FinishReason; text: string }
  | { kind: "tools"; calls: readonly ToolCallState[] }
  | { kind: "wait" }
  /** Waits until the provider is back. */
  | { kind: "waitOut"; text: string }
  | { kind: "continue" }
  | { kind: "askBudget"; budget: BudgetKind; text: string }
  | { kind: "notice"; noticed: Noticed }
  | { kind: "compact" }
  | { kind: "model"; messages: readonly string[] }
  | { kind: "answerMissing" };

/** How often the agent asks again after an empty answer before the run ends. */
const EMPTY_ANSWERS_MAX = 2;

export function decide(state: RunState, options: { contextTokens: number }): StepDecision {
  if (state.stopRequested !== null) return { kind: "end", reason: "cancelled", text: `Stopped by ${state.stopRequested}.` };
  const unfinished = [...state.tools.values()].filter((tool) => tool.status !== "ended");
  const open = [...state.questions.values()].filter((question) => question.answer === null);
  if (open.length > 0) return { kind: "wait" };
  const declined = declinedQuestion(state);
  if (declined) return declined;
  if (state.status === "paused") return whilePaused(state);
  if (unfinished.length > 0) return { kind: "tools", calls: unfinished };

  const steerable = state.waiting.filter((message) => message.mode !== "queue");
  const turnOver = isTurnOver(state);
  if (turnOver && steerable.length === 0) {
    if (state.emptyAnswers > EMPTY_ANSWERS_MAX) return { kind: "end", reason: "error", text: "The model gave several empty answers." };
    if (state.emptyAnswers > 0) return { kind: "answerMissing" };
    if (state.waiting.length === 0) return endOfTurn(state);
  }
  const budget = decideBudget(state);
  if (budget) return budget;
  const { threshold } = state.definition.harness.doomLoop;
  const noticed = noticeLoop(state, threshold);
  if (noticed) return { kind: "notice", noticed };
  const messages = turnOver ? state.waiting : steerable;
  if (canMakeRoom(state, options.contextTokens) || needsCompaction(state, options.contextTokens)) return { kind: "compact" };
  return { kind: "model", messages: messages.map((message) => message.message) };
}

/** Returns whether the model has finished its turn, so that only a message lets it continue. */
export function isTurnOver({ openCall, lastStop }: Pick<RunState, "openCall" | "lastStop">): boolean {
  return openCall === null && lastStop !== null && lastStop !== "tools" && lastStop !== "interrupted";
}

function whilePaused(state: RunState): StepDecision {
  if (state.paused?.why === "user" || isAtFork(state)) return { kind: "wait" };
  return state.paused?.why === "outage" ? { kind: "waitOut", text: state.paused.text } : { kind: "continue" };
}

function endOfTurn(state: RunState): StepDecision {
  switch (state.lastStop) {
    case "length":
      return { kind: "end", reason: "error", text: `The model's answer was cut off at its output limit: ${state.lastText.slice(-500)}` };
    case "filtered":
      return { kind: "end", reason: "error", text: "The provider's filter withheld the model's answer." };
    case "end":
    case "tools":
    case "interrupted":
    case null:
      return { kind: "end", reason: "done", text: state.lastText };
    default:
      return unreachable(state.lastStop);
  }
}

function declinedQuestion(state: RunState): StepDecision | null {
  for (const question of state.questions.values()) {
    if (question.answer?.answer !== "deny") continue;
    if (question.kind === "stuck") return { kind: "end", reason: "stuck", text: question.text };
    if (question.kind === "budget") {
      const budget = exceededBudget(state);
      if (budget) return { kind: "end", reason: finishFor(budget.budget), text: question.text };
    }
  }
  return null;
}

export function finishFor(budget: BudgetKind): FinishReason {
  if (budget === "steps") return "max_steps";
  return budget === "time" ? "timeout" : "budget";
}

function decideBudget(state: RunState): StepDecision | null {
  const budget = exceededBudget(state);
  if (!budget) return null;
  if (state.definition.harness.onBudget === "stop") return { kind: "end", reason: finishFor(budget.budget), text: budget.text };
  return { kind: "askBudget", ...budget };
}

export function exceededBudget(state: RunState): { budget: BudgetKind; text: string } | null {
  const { harness } = state.definition;
  const steps = state.budgets.steps ?? harness.maxSteps;
  // The limit applies to new steps. A step that has started may finish.
  if (state.openCall === null && state.step >= steps)
    return { budget: "steps", text: `The run took ${state.step} steps; the limit is ${steps}.` };
  const timeMs = state.budgets.timeMs ?? harness.timeoutMs;
  if (state.workedMs >= timeMs)
    return { budget: "time", text: `The run worked for ${Math.round(state.workedMs / 1000)} s; the limit is ${timeMs / 1000} s.` };
  const tokens = state.usage.inputTokens + state.usage.outputTokens;
  if (state.budgets.tokens !== undefined && tokens >= state.budgets.tokens) {
    return { budget: "tokens", text: `The run used ${tokens} tokens; the limit is ${state.budgets.tokens}.` };
  }
  if (state.budgets.costUsd !== undefined) {
    if (state.costUsd === null) return { budget: "cost", text: "The model's price is unknown, so the cost limit cannot be enforced." };
    if (state.costUsd >= state.budgets.costUsd) {
      return { budget: "cost", text: `The run spent $${state.costUsd.toFixed(4)}; the limit is $${state.budgets.costUsd.toFixed(4)}.` };
    }
  }
  return null;
}

function needsCompaction(state: RunState, contextTokens: number): boolean {
  const { compaction } = state.definition.harness;
  if (!compaction.enabled) return false;
  const estimated = state.conversation.estimatedTokens();
  const counted = state.lastInputTokens === 0 ? 0 : state.lastInputTokens + Math.max(0, estimated - state.estimatedAtAnswer);
  const used = Math.max(estimated, counted);
  const first = state.conversation.entries()[0];
  // If only the protected tail remains, another compaction would change nothing.
  const before = compactionStep(state, contextTokens);
  return used >= compaction.threshold * contextTokens && first !== undefined && first.step < before;
}

/** Returns whether the provider rejected the conversation as too long and compacting it could help. */
export function canMakeRoom(state: RunState, contextTokens: number): boolean {
  const first = state.conversation.entries()[0];
  if (state.overflow !== "refused" || !state.definition.harness.compaction.enabled || first === undefined) return false;
  return first.step < compactionStep(state, contextTokens);
}

/**
 * Returns the first step that must not be summarized. Always protects the newest step. Protects earlier steps within
 * half of the compaction threshold at most. If the provider rejected the conversation as too long, our token count was
 * wrong, so the limit is half of the conversation instead.
 */
export function compactionStep(state: RunState, contextTokens: number): number {
  const { protectTokens, threshold } = state.definition.harness.compaction;
  const half = state.overflow === null ? (threshold * contextTokens) / 2 : state.conversation.estimatedTokens() / 2;
  return Math.min(state.conversation.stepWithinTokens(Math.min(protectTokens, half)), state.step);
}
