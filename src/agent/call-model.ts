import { setTimeout as delay } from "node:timers/promises";
import { CaissonError } from "../contract/error.ts";
import type { AssistantPart } from "../contract/run.ts";
import type { NewRunEvent } from "../contract/run-event.ts";
import type { Usage } from "../contract/usage.ts";
import { defined } from "../lib/defined.ts";
import { traceparentBelow } from "../lib/trace-ids.ts";
import { canMakeRoom } from "./decide-step.ts";
import type { Journal } from "./journal.ts";
import type { Model, ModelChunk, ModelRequest, ToolSchema } from "./model/model.ts";
import type { RunState } from "./run-state.ts";

/**
 * What is streamed is put into the log in pieces of about this length, so that watchers see it and the log stays small.
 */
const STREAM_PIECE_MS = 200;
const BACKOFF_FIRST_MS = 500;
const BACKOFF_MAX_MS = 60_000;

export interface CallModelOptions {
  journal: Journal;
  model: Model;
  tools: readonly ToolSchema[];
  /** Ids of waiting messages this call is the first to see. */
  messages: readonly string[];
  signal: AbortSignal;
  crashpoint: (name: string) => void;
}

/**
 * One model call as intent, effect and outcome. A transient failure is tried again with growing pauses, each attempt a
 * fact of the log; when it lasts, the run is paused. An interrupted call keeps what was said so far. Throws what trying
 * again cannot help.
 */
export async function callModel(options: CallModelOptions): Promise<void> {
  const { journal } = options;
  const { state } = journal;
  const begun: NewRunEvent[] = state.openCall ? [] : [{ type: "step.started", data: { step: state.step + 1 } }];
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
    await journal.append([...begun.splice(0), requested]);
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
    // Whoever decides next makes room and comes back here.
    if (tooLong && canMakeRoom(state, options.model.contextTokens)) return;
    if (pauseMs === null) throw outcome.error;
    await delay(pauseMs, undefined, { signal: options.signal }).catch(() => undefined);
    if (options.signal.aborted) {
      await journal.append([interrupted(call, [], 0)]);
      return;
    }
  }
}

/** A sub-run's parent has the same provider, and the whole run waits for it there. */
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
    // Each attempt is a span of its own, with the id that whoever makes spans of the events gives it.
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
    throw new CaissonError("unavailable", `${model.name} ended its answer without saying so`);
  } catch (error) {
    await streamer.flush();
    if (options.signal.aborted) return { kind: "ended", event: interrupted(call, collector.parts, performance.now() - startMs) };
    if (error instanceof CaissonError) return { kind: "failed", error };
    throw error;
  }
}

/**
 * What was said before an interruption stays in the conversation; tools that were asked for do not: nobody will answer
 * them.
 */
function interrupted(call: string, parts: readonly AssistantPart[], durationMs: number): ModelEnded {
  const usage: Usage = { inputTokens: 0, outputTokens: 0, cachedInputTokens: 0, reasoningTokens: 0 };
  const said = parts.filter((part) => part.kind === "text" && part.text !== "");
  return { type: "model.ended", data: { call, parts: said, usage, costUsd: 0, stop: "interrupted", durationMs } };
}

function toolRequests(event: ModelEnded, step: number): NewRunEvent[] {
  return event.data.parts.flatMap((part): NewRunEvent[] =>
    part.kind === "toolCall"
      ? [{ type: "tool.requested", data: { call: part.call, step, name: part.name, arguments: part.arguments } }]
      : [],
  );
}

function backoff(failures: number, error: CaissonError): number {
  const asked = error.details?.retryAfterMs;
  // What the provider asks for is bounded where it is read; coming back sooner would only be refused again.
  return typeof asked === "number" ? asked : Math.min(BACKOFF_MAX_MS, BACKOFF_FIRST_MS * 2 ** failures);
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
