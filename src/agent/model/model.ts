import type { z } from "zod";
import type { AssistantPart } from "../../contract/run.ts";
import type { Usage } from "../../contract/usage.ts";

/** What a model is sent. Our own form: providers' forms are made from it at the edge. */
export type ModelMessage =
  | { role: "system"; text: string }
  | { role: "user"; text: string }
  | { role: "assistant"; parts: readonly AssistantPart[] }
  | { role: "tool"; results: readonly { providerCall: string; name: string; text: string; isError: boolean }[] };

export interface ToolSchema {
  name: string;
  description: string;
  /** JSON schema of the arguments. */
  parameters: z.core.util.JSONType;
}

export interface ModelRequest {
  /**
   * Which agent asks, the position of this call among the run's model calls, and what for. Not sent to providers;
   * scripts and recordings go by it.
   */
  from: { agent: string; position: number; purpose: "step" | "summary"; estimatedTokens: number };
  messages: readonly ModelMessage[];
  tools: readonly ToolSchema[];
  outputTokensMax?: number;
  temperature?: number;
}

export type ModelChunk =
  | { kind: "text"; text: string }
  | { kind: "thought"; text: string; provider?: z.core.util.JSONType }
  /** Complete; arguments that are not JSON arrive as `{ kind: "badToolCall" }`, which is told to the model. */
  | { kind: "toolCall"; providerCall: string; name: string; arguments: z.core.util.JSONType; provider?: z.core.util.JSONType }
  | { kind: "badToolCall"; providerCall: string; name: string; text: string }
  /** Last. */
  | { kind: "end"; stop: "end" | "tools" | "length" | "filtered"; usage: Usage };

export interface ModelCallOptions {
  signal: AbortSignal;
  /** The call's span, in W3C's form, for providers that trace what they do. */
  traceparent?: string;
}

/**
 * The model seam. `stream` yields chunks and ends with exactly one `end`. It throws CaissonError: `unavailable` or
 * `busy` (worth a retry, `details.retryAfterMs`), `unauthenticated` (names the variable), `not_found` (no such model),
 * `invalid` (request refused), `too_large` (context window), `timeout` (no chunk for `stallMs`), `protocol` (garbage),
 * `cancelled`.
 */
export interface Model {
  /** As the user writes it: `anthropic/claude-…`, `scripted:FILE`. */
  readonly name: string;
  readonly contextTokens: number;
  stream(request: ModelRequest, options: ModelCallOptions): AsyncIterable<ModelChunk>;
  /** Null when the price is not known. */
  cost(usage: Usage): number | null;
}
