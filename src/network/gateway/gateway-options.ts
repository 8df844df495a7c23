import type http from "node:http";
import type https from "node:https";
import type { z } from "zod";
import type { Usage } from "../../contract/model/usage.ts";
import type { GatewayConfig, GatewayWire } from "../../contract/network/network.ts";
import type { GatewayCalled } from "../../contract/network/network-event.ts";
import type { InboundConnection } from "../../sandbox/sandbox.ts";

/** A provider, or any server that speaks its wire. */
export interface GatewayUpstream {
  /**
   * The base URL as the wire's own SDK expects it: with the version for OpenAI (`https://api.openai.com/v1`), with or
   * without it for Anthropic. Default: the provider's own URL.
   */
  baseUrl?: string;
  /**
   * Read for each call and never cached, so that a changed key takes effect at once. If the key is empty, we send none.
   */
  key: () => Promise<string>;
  /** Sent with each call, overriding the headers of the program inside. */
  headers?: Readonly<Record<string, string>>;
}

/** `inputTokens` counts all input tokens, including those read from a cache and those written to one. */
export interface GatewayUsage extends Usage {
  cacheWriteInputTokens: number;
}

/** A `gateway.called` event without the sandbox, the version and the time. */
export interface GatewayEvent {
  type: "gateway.called";
  data: Omit<z.infer<typeof GatewayCalled>["data"], "sandbox">;
}

export interface GatewayLimits {
  /** Simultaneous connections from inside. Further ones are dropped. */
  connectionsMax: number;
  /** How long a connection may stay open without a request. */
  connectionIdleMs: number;
  /** How long the head and body of a request may take to arrive. */
  requestMs: number;
  /** The maximum size of one request body, and of all that are held at once. */
  bodyBytesMax: number;
  bodiesBytesMax: number;
  /** Simultaneous calls, how many more may wait, and for how long. */
  callsMax: number;
  waitingMax: number;
  waitingMs: number;
  /**
   * How long the upstream may take to start its answer, how long no data may move after that, and how long a call may
   * take in total.
   */
  answerMs: number;
  stallMs: number;
  callMs: number;
  /**
   * How many bytes we inspect of an upstream's refusal, one event of a stream, and a whole answer. A longer answer is
   * still passed on.
   */
  refusalBytesMax: number;
  eventBytesMax: number;
  answerBytesMax: number;
  /** The output tokens to reserve for a call that sets no limit. */
  outputTokensAssumed: number;
  /** Events per minute of calls that cost nothing: a program inside must not fill the log for free. */
  freeEventsPerMinute: number;
}

export const gatewayLimits: GatewayLimits = {
  connectionsMax: 256,
  connectionIdleMs: 120_000,
  requestMs: 120_000,
  bodyBytesMax: 64 * 2 ** 20,
  bodiesBytesMax: 128 * 2 ** 20,
  callsMax: 16,
  waitingMax: 64,
  waitingMs: 300_000,
  answerMs: 600_000,
  stallMs: 300_000,
  callMs: 3_600_000,
  refusalBytesMax: 256 * 2 ** 10,
  eventBytesMax: 16 * 2 ** 20,
  answerBytesMax: 16 * 2 ** 20,
  outputTokensAssumed: 16_384,
  freeEventsPerMinute: 120,
};

export interface GatewayOptions {
  config: GatewayConfig;
  upstreams: Partial<Record<GatewayWire, GatewayUpstream>>;
  /**
   * The sandbox's spending according to its log. The log may lag behind this gateway's calls, which the gateway counts
   * itself.
   */
  readSpent: () => { costUsd: number; tokens: number };
  /** Records a call. If it throws, the gateway keeps the event and allows no call until the event is recorded. */
  emit: (event: GatewayEvent) => void;
  /** Returns US dollars, or null if the price is not known. With a cost limit, such a model is refused. */
  prices: (wire: GatewayWire, model: string, usage: GatewayUsage) => number | null;
  /** Redacts known secrets in a text. The upstream's own key is redacted in addition. */
  redact: (text: string) => string;
  /** Returns the run's remaining budget, with null for no limit. Must include what `emit` has received. */
  budget?: () => { costUsdLeft: number | null; tokensLeft: number | null };
  /**
   * Whether a call may use features that run on the provider's side: web search, fetching URLs, its MCP client, its
   * containers. These bypass the sandbox's network policy and are not metered in tokens. Default: no.
   */
  hostedTools?: () => boolean;
  /** A sentence that says how a person raises the limit. */
  howToRaise?: string;
  /** PEM certificates to trust for upstreams, in addition to the default and the system's. */
  upstreamCa?: readonly string[];
  /** Replace the gateway's own keep-alive agents. */
  agents?: { http?: http.Agent; https?: https.Agent };
  limits?: Partial<GatewayLimits>;
}

export interface Gateway {
  /** Handles a connection to the gateway's port. Never throws. */
  handle(connection: InboundConnection): void;
  /** Ends connections and calls. Resolves when every started call is recorded. */
  close(): Promise<void>;
}
