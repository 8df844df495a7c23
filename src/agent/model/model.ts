import type { z } from "zod";
import type { Usage } from "../../contract/model/usage.ts";
import type { AssistantPart } from "../../contract/run/run.ts";

/** A message to the model in our own format. The provider adapters convert it. */
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
   * The agent that asks, the position of this call among the run's model calls, and the purpose. Providers do not get
   * this; scripts and recordings use it.
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
  /**
   * A complete call. Arguments that are not valid JSON arrive as `{ kind: "badToolCall" }`, which the model gets back
   * as an error.
   */
  | { kind: "toolCall"; providerCall: string; name: string; arguments: z.core.util.JSONType; provider?: z.core.util.JSONType }
  | { kind: "badToolCall"; providerCall: string; name: string; text: string }
  /** Always the last chunk. */
  | { kind: "end"; stop: "end" | "tools" | "length" | "filtered"; usage: Usage };

export interface ModelCallOptions {
  signal: AbortSignal;
  /** The call's span in W3C format, for providers with tracing. */
  traceparent?: string;
}

/**
 * The interface to a model. `stream` yields chunks and ends with exactly one `end`. It throws CaissonError:
 * `unavailable` or `busy` (worth a retry, `details.retryAfterMs`), `unauthenticated` (names the variable), `not_found`
 * (no such model), `invalid` (request refused), `too_large` (context window), `timeout` (no chunk for `stallMs`),
 * `protocol` (garbage), `cancelled`.
 */
export interface Model {
  /** The name as the user writes it: `anthropic/claude-…`, `scripted:FILE`. */
  readonly name: string;
  readonly contextTokens: number;
  stream(request: ModelRequest, options: ModelCallOptions): AsyncIterable<ModelChunk>;
  /** Returns null if the price is unknown. */
  cost(usage: Usage): number | null;
}
