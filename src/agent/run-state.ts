import { AgentDefinition } from "../contract/agent.ts";
import type { Budgets, FinishReason, MessageMode, MessageSource, TodoList, ToolOutcome } from "../contract/run.ts";
import type { RunEvent } from "../contract/run-event.ts";
import { applyToFacts, emptyRunFacts, type RunFacts } from "../contract/run-facts.ts";
import { defined } from "../lib/defined.ts";
import { unreachable } from "../lib/unreachable.ts";
import { type CallRecord, signatureOf } from "./call-signature.ts";
import { type Conversation, createConversation } from "./conversation.ts";
import { newToolCall, type ToolCallState } from "./tool-call-state.ts";

export interface QuestionState {
  question: string;
  kind: "tool" | "budget" | "stuck";
  call: string | null;
  text: string;
  pattern: string | null;
  answer: { answer: "allow" | "always" | "deny"; text?: string | undefined; budgets?: Budgets | undefined } | null;
}

export interface WaitingMessage {
  message: string;
  source: MessageSource;
  mode: MessageMode;
  text: string;
}

/**
 * A run as its log tells it: the facts that its head has, too, and everything else. Changed only by `applyEvent`; the
 * same events give the same state.
 */
export interface RunState extends RunFacts {
  task: string;
  definition: AgentDefinition;
  ended: { reason: FinishReason; text: string } | null;
  /** Model calls begun: a retried call counts once. */
  position: number;
  /** The model call that was requested and has not ended. */
  openCall: { call: string; attempt: number } | null;
  /** What the model said last, until the step is over. */
  lastStop: "end" | "tools" | "length" | "filtered" | "interrupted" | null;
  lastText: string;
  emptyAnswers: number;
  tools: Map<string, ToolCallState>;
  waiting: WaitingMessage[];
  /** Message id → the model call that first saw it. */
  receipts: Map<string, string>;
  questions: Map<string, QuestionState>;
  /** Patterns a person allowed for the rest of the run. */
  always: Set<string>;
  lastInputTokens: number;
  /**
   * The conversation's estimate when the model last answered: what came since is on top of the provider's own count.
   */
  estimatedAtAnswer: number;
  /** The provider said that the conversation is too long: once it is compacted and tried again. */
  overflow: "refused" | "compacted" | null;
  conversation: Conversation;
  /** The span that the run is below, for whoever traces it. */
  traceparent: string | null;
  /** Signatures of ended tool calls, newest last, at most `CALL_HISTORY_MAX`. */
  callHistory: CallRecord[];
  /** The last time a loop was noticed, and how often it was since the run began to go in circles. */
  noticed: { pattern: string; atCall: number; times: number } | null;
  callsEnded: number;
  todo: TodoList;
  filesChanged: Set<string>;
}

export const CALL_HISTORY_MAX = 100;

export function emptyRunState(): RunState {
  return {
    ...emptyRunFacts(),
    task: "",
    definition: AgentDefinition.parse({ name: "none", system: "" }),
    ended: null,
    position: 0,
    openCall: null,
    lastStop: null,
    lastText: "",
    emptyAnswers: 0,
    tools: new Map(),
    waiting: [],
    receipts: new Map(),
    questions: new Map(),
    always: new Set(),
    lastInputTokens: 0,
    estimatedAtAnswer: 0,
    overflow: null,
    conversation: createConversation(),
    traceparent: null,
    callHistory: [],
    noticed: null,
    callsEnded: 0,
    todo: [],
    filesChanged: new Set(),
  };
}

/** Adds one event to the state. The only place where a run's state changes. */
export function applyEvent(state: RunState, event: RunEvent): void {
  const before = state.sandbox?.id;
  applyToFacts(state, event);
  switch (event.type) {
    case "run.created":
      applyCreated(state, event.data);
      return;
    case "run.sandboxed":
      if (before !== undefined && (before !== event.data.sandbox || event.data.restarted)) {
        for (const tool of state.tools.values()) if (tool.status === "started") tool.sandboxLost = event.data.files ?? "kept";
      }
      return;
    case "run.ended":
      state.ended = { reason: event.data.reason, text: event.data.text };
      return;
    case "run.reopened":
      applyReopened(state, event.data);
      return;
    case "step.started":
      state.tools.clear();
      state.lastStop = null;
      return;
    case "model.requested":
      applyRequested(state, event.data);
      return;
    case "model.ended":
      applyAnswer(state, event.data);
      return;
    case "tool.requested":
    case "tool.started":
      applyToolBegun(state, event);
      return;
    case "tool.ended":
      applyToolEnded(state, event.data);
      return;
    case "file.changed":
      state.filesChanged.add(event.data.path);
      return;
    case "message.received":
      state.waiting.push({ ...event.data });
      return;
    case "permission.asked": {
      state.questions.set(event.data.question, { ...event.data, answer: null });
      const tool = event.data.call === null ? undefined : state.tools.get(event.data.call);
      if (tool) tool.question = event.data.question;
      return;
    }
    case "permission.answered":
      applyAnswered(state, event.data);
      return;
    case "context.compacted":
      applyCompacted(state, event.data);
      return;
    case "loop.noticed":
      applyNoticed(state, event.data);
      return;
    case "model.failed":
      if (event.data.error.code === "too_large") state.overflow ??= "refused";
      return;
    case "todo.changed":
      state.todo = event.data.todo;
      return;
    case "run.queued":
    case "run.prioritized":
    case "run.labelled":
    case "run.noticed":
    case "run.claimed":
    case "run.paused":
    case "run.continued":
    case "run.stop_requested":
    case "gateway.called":
    case "model.streamed":
    case "tool.streamed":
    case "network.denied":
    case "network.failed":
    case "network.closed":
    case "network.changed":
    case "secret.used":
    case "secret.withheld":
    case "secret.revoked":
    case "port.opened":
    case "port.closed":
    case "health.changed":
    case "health.restart_started":
    case "health.restart_ended":
    case "health.escalated":
    case "sandbox.reported":
    case "artifact.stored":
    case "guardian.decided":
    case "guardian.settled":
    case "guardian.judged":
      // Nothing but facts, or for people to watch.
      return;
    default:
      unreachable(event);
  }
}

type DataOf<Type extends RunEvent["type"]> = Extract<RunEvent, { type: Type }>["data"];

function applyCreated(state: RunState, data: DataOf<"run.created">): void {
  state.task = data.task;
  state.traceparent = data.traceparent ?? null;
  state.definition = AgentDefinition.parse(data.agent.definition);
  state.conversation.begin({ system: state.definition.system, task: data.task });
}

/** A new beginning with an old conversation: nothing that led to the end leads to it again. */
function applyReopened(state: RunState, { onAsk, onBudget }: DataOf<"run.reopened">): void {
  const { definition } = state;
  state.definition = { ...definition, harness: { ...definition.harness, ...defined({ onAsk, onBudget }) } };
  state.ended = null;
  state.openCall = null;
  state.lastStop = null;
  state.emptyAnswers = 0;
  state.overflow = null;
  state.questions.clear();
  state.callHistory = [];
  state.noticed = null;
  for (const tool of state.tools.values()) if (tool.status !== "ended") tool.abandoned = true;
}

function applyRequested(state: RunState, data: DataOf<"model.requested">): void {
  if (state.openCall?.call !== data.call) {
    state.position += 1;
    state.conversation.startStep(state.step);
  }
  state.openCall = { call: data.call, attempt: data.attempt };
  for (const id of data.messages) {
    const at = state.waiting.findIndex((message) => message.message === id);
    const [message] = at === -1 ? [] : state.waiting.splice(at, 1);
    if (!message) continue;
    state.receipts.set(id, data.call);
    state.conversation.addUser(message.text, message.source);
  }
}

function applyAnswer(state: RunState, data: DataOf<"model.ended">): void {
  state.openCall = null;
  state.lastStop = data.stop;
  state.lastText = data.parts.flatMap((part) => (part.kind === "text" ? [part.text] : [])).join("");
  state.lastInputTokens = data.usage.inputTokens + data.usage.outputTokens;
  state.conversation.addAssistant(data.parts);
  state.estimatedAtAnswer = state.conversation.estimatedTokens();
  state.overflow = null;
  const calls = data.parts.filter((part) => part.kind === "toolCall");
  state.emptyAnswers = calls.length === 0 && state.lastText.trim() === "" && data.stop !== "interrupted" ? state.emptyAnswers + 1 : 0;
  for (const part of calls) state.tools.set(part.call, newToolCall(part));
}

function applyToolBegun(state: RunState, event: Extract<RunEvent, { type: "tool.requested" | "tool.started" }>): void {
  const tool = state.tools.get(event.data.call);
  if (!tool) return;
  tool.status = event.type === "tool.started" ? "started" : "requested";
  if (event.type === "tool.started") tool.startedAt = event.at;
}

function applyToolEnded(state: RunState, data: DataOf<"tool.ended">): void {
  const tool = state.tools.get(data.call);
  if (!tool || tool.status === "ended") return;
  tool.status = "ended";
  state.conversation.addToolResult({ providerCall: tool.providerCall, name: tool.name, text: data.text, isError: isError(data.outcome) });
  state.callsEnded += 1;
  const files = (data.details as { changedFiles?: unknown } | undefined)?.changedFiles;
  state.callHistory.push({ ...signatureOf({ ...tool, result: data.text }), changedFiles: files === true });
  if (state.callHistory.length > CALL_HISTORY_MAX) state.callHistory.shift();
}

function applyCompacted(state: RunState, data: DataOf<"context.compacted">): void {
  state.conversation.compact(data);
  state.lastInputTokens = 0;
  if (state.overflow === "refused") state.overflow = "compacted";
}

/** What happened long ago is no longer the same circle. */
function applyNoticed(state: RunState, data: DataOf<"loop.noticed">): void {
  const recent = state.noticed !== null && state.callsEnded - state.noticed.atCall <= CALL_HISTORY_MAX;
  state.noticed = { pattern: data.pattern, atCall: state.callsEnded, times: recent ? (state.noticed?.times ?? 0) + 1 : 1 };
}

function applyAnswered(state: RunState, data: DataOf<"permission.answered">): void {
  const question = state.questions.get(data.question);
  if (!question || question.answer) return;
  question.answer = { answer: data.answer, text: data.text, budgets: data.budgets };
  if (data.answer === "always" && question.pattern !== null) state.always.add(question.pattern);
}

function isError(outcome: ToolOutcome): boolean {
  return outcome !== "ok";
}
