import { CaissonError } from "../contract/error/error.ts";
import type { Usage } from "../contract/model/usage.ts";
import type { AssistantPart } from "../contract/run/run.ts";
import type { NewRunEvent } from "../contract/run/run-event.ts";
import { defined } from "../lib/defined.ts";
import { ignore } from "../lib/failures.ts";
import { traceparentBelow } from "../lib/trace-ids.ts";
import { canMakeRoom } from "./decide-step.ts";
import type { Journal } from "./journal.ts";
import type { LoopClock } from "./loop-clock.ts";
import type { Model, ModelChunk, ModelRequest, ToolSchema } from "./model/model.ts";
import type { RunState } from "./run-state.ts";

/** Streamed text goes into the log in pieces of about this length: viewers see it soon, and the log stays small. */
const STREAM_PIECE_MS = 200;
const BACKOFF_FIRST_MS = 500;
const BACKOFF_MAX_MS = 60_000;

export interface CallModelOptions {
  journal: Journal;
  model: Model;
  tools: readonly ToolSchema[];
  /** Ids of waiting messages that this call is the first to include. */
  messages: readonly string[];
  signal: AbortSignal;
  clock: LoopClock;
  crashpoint: (name: string) => void;
}

/**
 * Makes one model call, recorded as intent, effect and outcome. Transient failures are retried with growing pauses, and
 * each attempt is in the log; if they persist, the run is paused. An interrupted call keeps the text received so far.
 * Throws errors that a retry cannot fix.
 */
export async function callModel(options: CallModelOptions): Promise<void> {
  const { journal } = options;
  const { state } = journal;
  const startEvents: NewRunEvent[] = state.openCall ? [] : [{ type: "step.started", data: { step: state.step + 1 } }];
  const call = state.openCall?.call ?? `m${state.position + 1}`;
  const step = state.openCall ? state.step : state.step + 1;
  let attempt = (state.openCall?.attempt ?? 0) + 1;
  let messages = options.messages;
  for (let failures = 0; ; failures++, attempt++) {
    const estimated = state.conversation.estimatedTokens();
    const requested: NewRunEvent = {
      type: "model.requested",
      data: {
        call,
        step,
        attempt,
        model: state.model,
        digest: state.conversation.digest(),
        messages: [...messages],
        contextTokens: estimated,
      },
    };
    await journal.append([...startEvents.splice(0), requested]);
    messages = [];
    options.crashpoint("model.effect");
    const outcome = await attemptCall(options, { call, attempt });
    if (outcome.kind === "ended") {
      journal.note([outcome.event, ...toolRequests(outcome.event, step)]);
      return;
    }
    const pauseMs = failures < state.definition.harness.retries && outcome.error.retryable ? backoff(failures, outcome.error) : null;
    const { code, message } = outcome.error;
    const tooLong = code === "too_large" && state.overflow === null;
    const failed: NewRunEvent = { type: "model.failed", data: { call, error: { code, message }, retryInMs: tooLong ? 0 : pauseMs } };
    if (pauseMs === null && waitsOut(state, outcome.error)) return await journal.append([failed, outage(message)]);
    await journal.append([failed]);
    // The next decision compacts the conversation, then calls the model again.
    if (tooLong && canMakeRoom(state, options.model.contextTokens)) return;
    if (pauseMs === null) throw outcome.error;
    await ignore(options.clock.pause(pauseMs, options.signal), "the signal is checked below");
    if (options.signal.aborted) {
      await journal.append([interruptedEvent(call, [], 0)]);
      return;
    }
  }
}

/** A sub-run does not wait: its parent uses the same provider, and the whole run waits there. */
function waitsOut(state: RunState, error: CaissonError): boolean {
  return error.retryable && state.definition.harness.onOutage === "pause" && state.parent === null;
}

function outage(message: string): NewRunEvent {
  return { type: "run.paused", data: { why: "outage", text: `The model does not answer: ${message}` } };
}

type ModelEnded = Extract<NewRunEvent, { type: "model.ended" }>;

async function attemptCall(
  options: CallModelOptions,
  { call, attempt }: { call: string; attempt: number },
): Promise<{ kind: "ended"; event: ModelEnded } | { kind: "failed"; error: CaissonError }> {
  const { journal, model } = options;
  const { state } = journal;
  const startMs = performance.now();
  const collector = createCollector(call);
  const streamer = createStreamer(journal, call);
  const request: ModelRequest = {
    from: {
      agent: state.definition.name,
      position: state.position,
      purpose: "step",
      estimatedTokens: state.conversation.estimatedTokens(),
    },
    messages: state.conversation.messages(),
    tools: options.tools,
    ...(state.definition.outputTokensMax === undefined ? {} : { outputTokensMax: state.definition.outputTokensMax }),
    ...(state.definition.temperature === undefined ? {} : { temperature: state.definition.temperature }),
  };
  try {
    // Each attempt is a separate span, with the id that the telemetry derives from the events.
    const traceparent = traceparentBelow(state, attempt === 1 ? `model ${call}` : `model ${call} ${attempt - 1}`);
    for await (const chunk of model.stream(request, { signal: options.signal, ...defined({ traceparent }) })) {
      if (chunk.kind === "end") {
        await streamer.flush();
        const costUsd = model.cost(chunk.usage);
        const durationMs = performance.now() - startMs;
        return {
          kind: "ended",
          event: { type: "model.ended", data: { call, parts: collector.parts, usage: chunk.usage, costUsd, stop: chunk.stop, durationMs } },
        };
      }
      collector.add(chunk);
      if (chunk.kind === "text" || chunk.kind === "thought") await streamer.add(chunk.kind, chunk.text);
    }
    throw new CaissonError("unavailable", `${model.name} did not finish its answer`);
  } catch (error) {
    await streamer.flush();
    if (options.signal.aborted) return { kind: "ended", event: interruptedEvent(call, collector.parts, performance.now() - startMs) };
    if (error instanceof CaissonError) return { kind: "failed", error };
    throw error;
  }
}

/**
 * Ends an interrupted call. Its text stays in the conversation, but its tool calls do not, since they will get no
 * result.
 */
function interruptedEvent(call: string, parts: readonly AssistantPart[], durationMs: number): ModelEnded {
  const usage: Usage = { inputTokens: 0, outputTokens: 0, cachedInputTokens: 0, reasoningTokens: 0 };
  const textParts = parts.filter((part) => part.kind === "text" && part.text !== "");
  return { type: "model.ended", data: { call, parts: textParts, usage, costUsd: 0, stop: "interrupted", durationMs } };
}

function toolRequests(event: ModelEnded, step: number): NewRunEvent[] {
  return event.data.parts.flatMap((part): NewRunEvent[] =>
    part.kind === "toolCall"
      ? [{ type: "tool.requested", data: { call: part.call, step, name: part.name, arguments: part.arguments } }]
      : [],
  );
}

function backoff(failures: number, error: CaissonError): number {
  const retryAfterMs = error.details?.retryAfterMs;
  // The reader of the provider's answer bounds this value. A retry before that time would only be refused again.
  return typeof retryAfterMs === "number" ? retryAfterMs : Math.min(BACKOFF_MAX_MS, BACKOFF_FIRST_MS * 2 ** failures);
}

function createCollector(call: string) {
  const parts: AssistantPart[] = [];
  let calls = 0;
  const toolCall = (
    chunk: { providerCall: string; name: string },
    args: Pick<Extract<AssistantPart, { kind: "toolCall" }>, "arguments" | "badArguments" | "provider">,
  ) => {
    calls += 1;
    parts.push({ kind: "toolCall", call: `t${call.slice(1)}.${calls}`, providerCall: chunk.providerCall, name: chunk.name, ...args });
  };
  return {
    parts,
    add(chunk: Exclude<ModelChunk, { kind: "end" }>): void {
      if (chunk.kind === "toolCall")
        toolCall(chunk, { arguments: chunk.arguments, ...(chunk.provider === undefined ? {} : { provider: chunk.provider }) });
      else if (chunk.kind === "badToolCall") toolCall(chunk, { arguments: {}, badArguments: chunk.text });
      else addText(parts, chunk);
    },
  };
}

function addText(parts: AssistantPart[], chunk: Extract<ModelChunk, { kind: "text" | "thought" }>): void {
  const last = parts.at(-1);
  if (last?.kind === chunk.kind && "text" in last && !("provider" in last && last.provider !== undefined)) last.text += chunk.text;
  else parts.push({ kind: chunk.kind, text: chunk.text } as AssistantPart);
  const now = parts.at(-1);
  if (chunk.kind === "thought" && chunk.provider !== undefined && now?.kind === "thought") now.provider = chunk.provider;
}

function createStreamer(journal: Journal, call: string) {
  let kind: "text" | "thought" = "text";
  let text = "";
  let lastMs = performance.now();
  const flush = async () => {
    if (text === "") return;
    const piece = text;
    text = "";
    lastMs = performance.now();
    await journal.append([{ type: "model.streamed", data: { call, kind, text: piece } }]);
  };
  return {
    flush,
    async add(newKind: "text" | "thought", piece: string) {
      if (newKind !== kind) await flush();
      kind = newKind;
      text += piece;
      if (performance.now() - lastMs >= STREAM_PIECE_MS) await flush();
    },
  };
}
