import type {
  JSONSchema7,
  LanguageModelV4,
  LanguageModelV4CallOptions,
  LanguageModelV4Message,
  LanguageModelV4StreamPart,
  LanguageModelV4ToolCall,
  LanguageModelV4Usage,
  SharedV4ProviderMetadata,
  SharedV4ProviderOptions,
} from "@ai-sdk/provider";
import { CaissonError } from "../../contract/error/error.ts";
import type { Price } from "../../contract/model/price.ts";
import type { Usage } from "../../contract/model/usage.ts";
import type { AssistantPart } from "../../contract/run/run.ts";
import { asJson } from "../../lib/as-json.ts";
import { ignore, ignoring } from "../../lib/failures.ts";
import type { Model, ModelChunk, ModelMessage, ModelRequest } from "./model.ts";
import { CONTEXT_TOKENS_DEFAULT, costOf } from "./prices.ts";
import { translateProviderError } from "./provider-error.ts";

/** A model that sends nothing for this long counts as dead, and the call is retried. */
export const STALL_MS_DEFAULT = 120_000;
/**
 * If our rough count exceeds this part of the window, a refused request counts as too long: not every provider has a
 * code for that.
 */
const NEARLY_FULL = 0.6;

/**
 * Adapts a model of the AI SDK to our interface. Does not use the provider's own retries, because each attempt belongs
 * in the run log.
 */
export function createProviderModel(options: {
  name: string;
  language: LanguageModelV4;
  price: Price | null;
  stallMs?: number;
  secrets?: readonly string[];
}): Model {
  const stallMs = options.stallMs ?? STALL_MS_DEFAULT;
  const contextTokens = options.price?.contextTokens ?? CONTEXT_TOKENS_DEFAULT;
  return {
    name: options.name,
    contextTokens,
    cost: (usage) => costOf(usage, options.price),
    async *stream(request, { signal, traceparent }) {
      const stall = new AbortController();
      const both = AbortSignal.any([signal, stall.signal]);
      let timer = setTimeout(() => stall.abort(), stallMs);
      const touch = () => {
        clearTimeout(timer);
        timer = setTimeout(() => stall.abort(), stallMs);
      };
      try {
        const { stream } = await options.language.doStream(callOptions(request, { abortSignal: both, traceparent }));
        yield* chunks(stream, { signal: both, touch, name: options.name });
      } catch (error) {
        if (signal.aborted) throw new CaissonError("cancelled", `the call to ${options.name} was cancelled`, { cause: error });
        if (stall.signal.aborted) {
          throw new CaissonError("timeout", `${options.name} sent nothing for ${stallMs} ms`, { cause: error });
        }
        const { estimatedTokens } = request.from;
        const nearlyFull = estimatedTokens > NEARLY_FULL * contextTokens;
        throw translateProviderError(error, { model: options.name, nearlyFull, secrets: options.secrets ?? [] });
      } finally {
        clearTimeout(timer);
        stall.abort();
      }
    },
  };
}

function callOptions(
  request: ModelRequest,
  { abortSignal, traceparent }: { abortSignal: AbortSignal; traceparent: string | undefined },
): LanguageModelV4CallOptions {
  return {
    prompt: request.messages.map(toProvider),
    tools: request.tools.map((tool) => ({
      type: "function" as const,
      name: tool.name,
      description: tool.description,
      inputSchema: tool.parameters as JSONSchema7,
    })),
    abortSignal,
    ...(traceparent === undefined ? {} : { headers: { traceparent } }),
    ...(request.outputTokensMax === undefined ? {} : { maxOutputTokens: request.outputTokensMax }),
    ...(request.temperature === undefined ? {} : { temperature: request.temperature }),
  };
}

function toProvider(message: ModelMessage): LanguageModelV4Message {
  switch (message.role) {
    case "system":
      return { role: "system", content: message.text };
    case "user":
      return { role: "user", content: [{ type: "text", text: message.text }] };
    case "assistant":
      return {
        role: "assistant",
        content: message.parts.map(toProviderPart),
      };
    case "tool":
      return {
        role: "tool",
        content: message.results.map((result) => ({
          type: "tool-result" as const,
          toolCallId: result.providerCall,
          toolName: result.name,
          output: { type: result.isError ? ("error-text" as const) : ("text" as const), value: result.text },
        })),
      };
  }
}

function toProviderPart(part: AssistantPart) {
  switch (part.kind) {
    case "text":
      return { type: "text" as const, text: part.text };
    case "thought": {
      const providerOptions = part.provider as SharedV4ProviderOptions | undefined;
      return { type: "reasoning" as const, text: part.text, ...(providerOptions ? { providerOptions } : {}) };
    }
    case "toolCall": {
      const providerOptions = part.provider as SharedV4ProviderOptions | undefined;
      const call = { type: "tool-call" as const, toolCallId: part.providerCall, toolName: part.name, input: part.arguments };
      return { ...call, ...(providerOptions ? { providerOptions } : {}) };
    }
  }
}

async function* chunks(
  stream: ReadableStream<LanguageModelV4StreamPart>,
  options: { signal: AbortSignal; touch: () => void; name: string },
): AsyncGenerator<ModelChunk> {
  const reader = stream.getReader();
  // Reads race against the abort: a provider that never answers must not outlive the signal.
  const aborted = new Promise<never>((_, reject) => {
    options.signal.addEventListener("abort", () => reject(options.signal.reason), { once: true });
  });
  void ignore(aborted, "awaited in the race below");
  const thoughts = new Map<string, SharedV4ProviderMetadata | undefined>();
  let calls = 0;
  try {
    for (;;) {
      const { done, value: part } = await Promise.race([reader.read(), aborted]);
      if (done) throw new CaissonError("unavailable", `${options.name} did not finish its answer`);
      options.touch();
      switch (part.type) {
        case "text-delta":
          if (part.delta !== "") yield { kind: "text", text: part.delta };
          break;
        case "reasoning-start":
          thoughts.set(part.id, part.providerMetadata);
          break;
        case "reasoning-delta":
          // Some providers send the signature as a separate piece.
          thoughts.set(part.id, mergeMetadata(thoughts.get(part.id), part.providerMetadata));
          if (part.delta !== "") yield { kind: "thought", text: part.delta };
          break;
        case "reasoning-end": {
          const provider = mergeMetadata(thoughts.get(part.id), part.providerMetadata);
          if (provider) yield { kind: "thought", text: "", provider: asJson(provider) };
          break;
        }
        case "tool-call":
          calls += 1;
          yield toolCall(part);
          break;
        case "error":
          throw part.error;
        case "finish":
          yield { kind: "end", stop: stopOf(part.finishReason.unified, calls), usage: usageOf(part.usage) };
          return;
        default:
          break;
      }
    }
  } finally {
    void ignore(reader.cancel(), "the answer is complete, or its error is thrown");
  }
}

function mergeMetadata(
  before: SharedV4ProviderMetadata | undefined,
  now: SharedV4ProviderMetadata | undefined,
): SharedV4ProviderMetadata | undefined {
  if (!before || !now) return now ?? before;
  return Object.fromEntries(Object.keys({ ...before, ...now }).map((name) => [name, { ...before[name], ...now[name] }]));
}

function toolCall(part: LanguageModelV4ToolCall): ModelChunk {
  const about = { providerCall: part.toolCallId, name: part.toolName };
  const input = part.input.trim() === "" ? {} : ignoring("the model learns that its call is malformed", () => JSON.parse(part.input));
  if (input === undefined) return { kind: "badToolCall", ...about, text: part.input };
  const provider = part.providerMetadata === undefined ? {} : { provider: asJson(part.providerMetadata) };
  return { kind: "toolCall", ...about, arguments: input, ...provider };
}

function stopOf(reason: string, calls: number): "end" | "tools" | "length" | "filtered" {
  if (calls > 0 || reason === "tool-calls") return "tools";
  if (reason === "length") return "length";
  return reason === "content-filter" ? "filtered" : "end";
}

function usageOf(usage: LanguageModelV4Usage): Usage {
  const count = (value: number | undefined) => Math.max(0, Math.trunc(value ?? 0)) || 0;
  return {
    inputTokens: count(usage.inputTokens.total),
    outputTokens: count(usage.outputTokens.total),
    cachedInputTokens: count(usage.inputTokens.cacheRead),
    reasoningTokens: count(usage.outputTokens.reasoning),
  };
}
