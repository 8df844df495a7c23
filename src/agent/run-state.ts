import { AgentDefinition } from "../contract/agent/agent.ts";
import type { EventFor } from "../contract/event/event-family.ts";
import { type Handlers, handle } from "../contract/event/handlers.ts";
import type { FinishReason } from "../contract/outcome.ts";
import type { Budgets, MessageMode, MessageSource, TodoList, ToolOutcome } from "../contract/run/run.ts";
import type { RunEvent, runEvents } from "../contract/run/run-event.ts";
import { applyToFacts, emptyRunFacts, type RunFacts } from "../contract/run/run-facts.ts";
import { defined } from "../lib/defined.ts";
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
 * A run as its log describes it: the facts in its head, and everything else. Only `applyEvent` changes it, and the same
 * events give the same state.
 */
export interface RunState extends RunFacts {
  task: string;
  definition: AgentDefinition;
  ended: { reason: FinishReason; text: string } | null;
  /** The number of model calls started. Retries of a call do not count. */
  position: number;
  /** The last step whose end is in the log, and what the run had cost then. */
  stepEnded: number;
  costAtStepEnd: number;
  /** The model call that was requested and has not ended, or null. */
  openCall: { call: string; attempt: number } | null;
  /** Why the model's last answer stopped; null after the next step starts. */
  lastStop: "end" | "tools" | "length" | "filtered" | "interrupted" | null;
  lastText: string;
  emptyAnswers: number;
  tools: Map<string, ToolCallState>;
  waiting: WaitingMessage[];
  /** Message id → the model call that first saw it. */
  receipts: Map<string, string>;
  questions: Map<string, QuestionState>;
  /** Patterns that a person allowed for the rest of the run. */
  always: Set<string>;
  lastInputTokens: number;
  /**
   * Our estimate of the conversation's tokens when the model last answered. We add the growth since then to the
   * provider's count.
   */
  estimatedAtAnswer: number;
  /** Set when the provider rejected the conversation as too long. It is compacted and tried again once. */
  overflow: "refused" | "compacted" | null;
  conversation: Conversation;
  /** The parent span of the run, for tracing. */
  traceparent: string | null;
  /** Signatures of ended tool calls, newest last, at most `CALL_HISTORY_MAX`. */
  callHistory: CallRecord[];
  /** The last loop notice, and how many there were in this series. */
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
    stepEnded: 0,
    costAtStepEnd: 0,
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

/** Applies one event to the state. This is the only place where a run's state changes. */
export function applyEvent(state: RunState, event: RunEvent): void {
  // First, since handlers compare the event with the facts before it.
  handle(handlers, event, state);
  applyToFacts(state, event);
}

/** Applies an event that a later rewind takes back: only what the facts count remains of it. */
export function applyRewoundEvent(state: RunState, event: RunEvent): void {
  applyToFacts(state, event);
}

const handlers: Handlers<EventFor<typeof runEvents, "state">, RunState> = {
  "run.created": applyCreated,
  "run.sandboxed": applySandboxed,
  "rules.loaded": ({ data }, state) => {
    state.conversation.setRules(data.text);
  },
  "run.ended": ({ data: { reason, text } }, state) => {
    state.ended = { reason, text };
  },
  "run.reopened": applyReopened,
  "run.forked": ({ data }, state) => {
    const { ended } = state;
    state.traceparent = null;
    // Its own costs begin at nothing.
    Object.assign(state, { stepEnded: data.from.step, costAtStepEnd: 0 });
    attend(state, data);
    beginAgain(state);
    if (data.isTail) state.ended = ended;
  },
  "run.rewound": ({ data }, state) => {
    // What the abandoned steps cost is not part of the next one.
    Object.assign(state, { stepEnded: data.toStep, costAtStepEnd: state.costUsd ?? state.costAtStepEnd });
    beginAgain(state);
  },
  "step.started": (_, state) => {
    state.tools.clear();
    state.lastStop = null;
  },
  "step.ended": ({ data }, state) => {
    state.stepEnded = data.step;
    state.costAtStepEnd += data.costUsd ?? 0;
  },
  "model.requested": applyRequested,
  "model.ended": applyAnswer,
  "model.failed": ({ data }, state) => {
    if (data.error.code === "too_large") state.overflow ??= "refused";
  },
  "tool.requested": applyToolBegun,
  "tool.started": applyToolBegun,
  "tool.ended": applyToolEnded,
  "file.changed": ({ data }, state) => {
    state.filesChanged.add(data.path);
  },
  "message.received": ({ data }, state) => {
    state.waiting.push({ ...data });
  },
  "permission.asked": ({ data }, state) => {
    state.questions.set(data.question, { ...data, answer: null });
    const tool = data.call === null ? undefined : state.tools.get(data.call);
    if (tool) tool.question = data.question;
  },
  "permission.answered": applyAnswered,
  "context.compacted": applyCompacted,
  "loop.noticed": applyNoticed,
  "todo.changed": ({ data }, state) => {
    state.todo = data.todo;
  },
};

type EventOf<Type extends RunEvent["type"]> = Extract<RunEvent, { type: Type }>;

/** Marks the calls whose processes are lost because the sandbox was replaced or restarted. */
function applySandboxed({ data }: EventOf<"run.sandboxed">, { sandbox, tools }: RunState): void {
  if (sandbox === null || (sandbox.id === data.sandbox && !data.restarted)) return;
  for (const tool of tools.values()) if (tool.status === "started") tool.sandboxLost = data.files ?? "kept";
}

function applyCreated({ data }: EventOf<"run.created">, state: RunState): void {
  state.task = data.task;
  state.traceparent = data.traceparent ?? null;
  state.definition = AgentDefinition.parse(data.agent.definition);
  state.conversation.begin({ system: state.definition.system, task: data.task });
}

function applyReopened({ data }: EventOf<"run.reopened">, state: RunState): void {
  attend(state, data);
  beginAgain(state);
  state.lastStop = null;
}

/** Changes whether a person can be asked. */
function attend(state: RunState, { onAsk, onBudget }: Pick<EventOf<"run.reopened">["data"], "onAsk" | "onBudget">): void {
  const { definition } = state;
  state.definition = { ...definition, harness: { ...definition.harness, ...defined({ onAsk, onBudget }) } };
}

/**
 * Starts over but keeps the conversation. The cause of the end, such as an empty answer or a loop, must not end the run
 * again.
 */
function beginAgain(state: RunState): void {
  state.ended = null;
  state.openCall = null;
  state.emptyAnswers = 0;
  state.overflow = null;
  state.questions.clear();
  state.callHistory = [];
  state.noticed = null;
  for (const tool of state.tools.values()) if (tool.status !== "ended") tool.abandoned = true;
}

function applyRequested({ data }: EventOf<"model.requested">, state: RunState): void {
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

function applyAnswer({ data }: EventOf<"model.ended">, state: RunState): void {
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

function applyToolBegun(event: EventOf<"tool.requested" | "tool.started">, state: RunState): void {
  const tool = state.tools.get(event.data.call);
  if (!tool) return;
  tool.status = event.type === "tool.started" ? "started" : "requested";
  if (event.type === "tool.started") tool.startedAt = event.at;
}

function applyToolEnded({ data }: EventOf<"tool.ended">, state: RunState): void {
  const tool = state.tools.get(data.call);
  if (!tool || tool.status === "ended") return;
  tool.status = "ended";
  state.conversation.addToolResult({ providerCall: tool.providerCall, name: tool.name, text: data.text, isError: isError(data.outcome) });
  state.callsEnded += 1;
  const files = (data.details as { changedFiles?: unknown } | undefined)?.changedFiles;
  state.callHistory.push({ ...signatureOf({ ...tool, result: data.text }), changedFiles: files === true });
  if (state.callHistory.length > CALL_HISTORY_MAX) state.callHistory.shift();
}

function applyCompacted({ data }: EventOf<"context.compacted">, state: RunState): void {
  state.conversation.compact(data);
  state.lastInputTokens = 0;
  if (state.overflow === "refused") state.overflow = "compacted";
}

/** A notice long after the last one starts a new series. */
function applyNoticed({ data }: EventOf<"loop.noticed">, state: RunState): void {
  const recent = state.noticed !== null && state.callsEnded - state.noticed.atCall <= CALL_HISTORY_MAX;
  state.noticed = { pattern: data.pattern, atCall: state.callsEnded, times: recent ? (state.noticed?.times ?? 0) + 1 : 1 };
}

function applyAnswered({ data }: EventOf<"permission.answered">, state: RunState): void {
  const question = state.questions.get(data.question);
  if (!question || question.answer) return;
  question.answer = { answer: data.answer, text: data.text, budgets: data.budgets };
  if (data.answer === "always" && question.pattern !== null) state.always.add(question.pattern);
}

function isError(outcome: ToolOutcome): boolean {
  return outcome !== "ok";
}
