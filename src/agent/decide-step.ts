import type { FinishReason } from "../contract/run.ts";
import { unreachable } from "../lib/unreachable.ts";
import { type Noticed, noticeLoop } from "./doom-loop.ts";
import type { RunState } from "./run-state.ts";
import type { ToolCallState } from "./tool-call-state.ts";

export type BudgetKind = "steps" | "time" | "tokens" | "cost";

/** What to do next. Pure: the same state gives the same decision, before a crash and after it. */
export type Decision =
  | { kind: "end"; reason: FinishReason; text: string }
  | { kind: "tools"; calls: readonly ToolCallState[] }
  | { kind: "wait" }
  /** For a provider to be back. */
  | { kind: "waitOut"; text: string }
  | { kind: "continue" }
  | { kind: "askBudget"; budget: BudgetKind; text: string }
  | { kind: "notice"; noticed: Noticed }
  | { kind: "compact" }
  | { kind: "model"; messages: readonly string[] }
  | { kind: "answerMissing" };

/** Answers without a word or a call are asked about this often before the run ends. */
const EMPTY_ANSWERS_MAX = 2;

export function decide(state: RunState, options: { contextTokens: number }): Decision {
  if (state.stopRequested !== null) return { kind: "end", reason: "cancelled", text: `Stopped by ${state.stopRequested}.` };
  const unfinished = [...state.tools.values()].filter((tool) => tool.status !== "ended");
  const open = [...state.questions.values()].filter((question) => question.answer === null);
  if (open.length > 0) return { kind: "wait" };
  const declined = declinedQuestion(state);
  if (declined) return declined;
  if (state.status === "paused") return whilePaused(state);
  if (unfinished.length > 0) return { kind: "tools", calls: unfinished };

  const steerable = state.waiting.filter((message) => message.mode !== "queue");
  const turnOver = state.openCall === null && state.lastStop !== null && state.lastStop !== "tools" && state.lastStop !== "interrupted";
  if (turnOver && steerable.length === 0) {
    if (state.emptyAnswers > EMPTY_ANSWERS_MAX) return { kind: "end", reason: "error", text: "The model answered nothing, several times." };
    if (state.emptyAnswers > 0) return { kind: "answerMissing" };
    if (state.waiting.length === 0) return endOfTurn(state);
  }
  const budget = exceeded(state);
  if (budget) return budget;
  const { threshold } = state.definition.harness.doomLoop;
  const noticed = noticeLoop(state, threshold);
  if (noticed) return { kind: "notice", noticed };
  const messages = turnOver ? state.waiting : steerable;
  if (canMakeRoom(state, options.contextTokens) || needsCompaction(state, options.contextTokens)) return { kind: "compact" };
  return { kind: "model", messages: messages.map((message) => message.message) };
}

function whilePaused(state: RunState): Decision {
  if (state.paused?.why === "user") return { kind: "wait" };
  return state.paused?.why === "outage" ? { kind: "waitOut", text: state.paused.text } : { kind: "continue" };
}

function endOfTurn(state: RunState): Decision {
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

function declinedQuestion(state: RunState): Decision | null {
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

function exceeded(state: RunState): Decision | null {
  const budget = exceededBudget(state);
  if (!budget) return null;
  if (state.definition.harness.onBudget === "stop") return { kind: "end", reason: finishFor(budget.budget), text: budget.text };
  return { kind: "askBudget", ...budget };
}

export function exceededBudget(state: RunState): { budget: BudgetKind; text: string } | null {
  const { harness } = state.definition;
  const steps = state.budgets.steps ?? harness.maxSteps;
  // A step that was begun may be finished: the bound is on beginning another.
  if (state.openCall === null && state.step >= steps)
    return { budget: "steps", text: `${state.step} steps were made; the bound is ${steps}.` };
  const timeMs = state.budgets.timeMs ?? harness.timeoutMs;
  if (state.workedMs >= timeMs)
    return { budget: "time", text: `The run worked for ${Math.round(state.workedMs / 1000)} s; the bound is ${timeMs / 1000} s.` };
  const tokens = state.usage.inputTokens + state.usage.outputTokens;
  if (state.budgets.tokens !== undefined && tokens >= state.budgets.tokens) {
    return { budget: "tokens", text: `${tokens} tokens were used; the bound is ${state.budgets.tokens}.` };
  }
  if (state.budgets.costUsd !== undefined) {
    if (state.costUsd === null) return { budget: "cost", text: "The model's price is not known, so the bound on its cost cannot be kept." };
    if (state.costUsd >= state.budgets.costUsd) {
      return { budget: "cost", text: `$${state.costUsd.toFixed(4)} was spent; the bound is $${state.budgets.costUsd.toFixed(4)}.` };
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
  // Nothing but the protected tail left: compacting again would change nothing.
  const before = compactionStep(state, contextTokens);
  return used >= compaction.threshold * contextTokens && first !== undefined && first.step < before;
}

/** Whether the provider found the conversation too long, and compacting it is worth one more try. */
export function canMakeRoom(state: RunState, contextTokens: number): boolean {
  const first = state.conversation.entries()[0];
  if (state.overflow !== "refused" || !state.definition.harness.compaction.enabled || first === undefined) return false;
  return first.step < compactionStep(state, contextTokens);
}

/**
 * Everything before this step may be summarised. At least the newest step stays, and at most half of what may be used
 * is protected; half of what there is when the provider found it too long, since then our count was wrong.
 */
export function compactionStep(state: RunState, contextTokens: number): number {
  const { protectTokens, threshold } = state.definition.harness.compaction;
  const half = state.overflow === null ? (threshold * contextTokens) / 2 : state.conversation.estimatedTokens() / 2;
  return Math.min(state.conversation.stepWithinTokens(Math.min(protectTokens, half)), state.step);
}
