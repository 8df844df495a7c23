import type http from "node:http";
import type https from "node:https";
import type { z } from "zod";
import type { GatewaySpec, GatewayWire } from "../../contract/network.ts";
import type { GatewayCalled } from "../../contract/network-event.ts";
import type { Usage } from "../../contract/usage.ts";
import type { InboundConnection } from "../../sandbox/sandbox.ts";

/** One provider, or anything that speaks its wire. */
export interface GatewayUpstream {
  /**
   * As the wire's own SDK writes it: OpenAI's with the version (`https://api.openai.com/v1`), Anthropic's with or
   * without. Absent: the provider's own.
   */
  baseUrl?: string;
  /** Asked for at each call, so that a changed key counts at once; never kept. An empty one means that none is sent. */
  key: () => Promise<string>;
  /** Sent with each call, over what the program inside sent. */
  headers?: Readonly<Record<string, string>>;
}

/** `inputTokens` are all of them; those read from a cache and those written to one are parts of it. */
export interface GatewayUsage extends Usage {
  cacheWriteInputTokens: number;
}

/** `gateway.called` without the sandbox, the version and the time. */
export interface GatewayEvent {
  type: "gateway.called";
  data: Omit<z.infer<typeof GatewayCalled>["data"], "sandbox">;
}

export interface GatewayLimits {
  /** Connections of programs inside at once; the next is dropped. */
  connectionsMax: number;
  /** How long a connection may stay without a request. */
  connectionIdleMs: number;
  /** How long a request's head and body may take to come. */
  requestMs: number;
  /** One request's body, and all that are held at once. */
  bodyBytesMax: number;
  bodiesBytesMax: number;
  /** Calls at once, and how many more may wait, for how long. */
  callsMax: number;
  waitingMax: number;
  waitingMs: number;
  /**
   * How long the upstream may take to begin its answer, how long neither side may move once it began, and how long a
   * call may take in all.
   */
  answerMs: number;
  stallMs: number;
  callMs: number;
  /**
   * Of a refusal by the upstream, one event of a stream, and a whole answer, this much is looked into. A longer answer
   * is passed on all the same.
   */
  refusalBytesMax: number;
  eventBytesMax: number;
  answerBytesMax: number;
  /** What a call may answer is reserved as this many tokens when it sets no bound of its own. */
  outputTokensAssumed: number;
  /** Events of calls that cost nothing, in a minute: a program inside must not fill the log for free. */
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
  spec: GatewaySpec;
  upstreams: Partial<Record<GatewayWire, GatewayUpstream>>;
  /** What this sandbox spent by its log. It may be behind the calls of this gateway, which counts those itself. */
  spent: () => { costUsd: number; tokens: number };
  /** Records a call. When it throws, the event is kept and no call is let through until it was taken. */
  emit: (event: GatewayEvent) => void;
  /** US dollars; null where the price is not known. With a bound on the cost, such a model is refused. */
  prices: (wire: GatewayWire, model: string, usage: GatewayUsage) => number | null;
  /** Redacts known secrets in a text. The upstream's own key is redacted besides. */
  redact: (text: string) => string;
  /** What is left of the run's own budget; null where there is no bound. Expected to count what `emit` was told. */
  budget?: () => { costUsdLeft: number | null; tokensLeft: number | null };
  /**
   * Whether a call may use what the provider does on its own side: its web search, its fetching of URLs, its MCP
   * client, its containers. These go around the sandbox's network policy and are not metered by tokens. Default: no.
   */
  hostedTools?: () => boolean;
  /** A sentence that says how a person raises the bound. */
  howToRaise?: string;
  /** Certificates (PEM) that upstreams are trusted by, besides the default and the system's. */
  upstreamCa?: readonly string[];
  /** In place of the gateway's own keep-alive agents. */
  agents?: { http?: http.Agent; https?: https.Agent };
  limits?: Partial<GatewayLimits>;
}

export interface Gateway {
  /** Takes a connection of the gateway's port. Never throws. */
  handle(connection: InboundConnection): void;
  /** Ends connections and calls; resolves once each call that had begun is recorded. */
  close(): Promise<void>;
}
