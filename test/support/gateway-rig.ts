import { GatewayCalled } from "../../src/contract/network/network-event.ts";
import { createGateway } from "../../src/network/gateway/gateway.ts";
import type { GatewayEvent, GatewayOptions } from "../../src/network/gateway/gateway-options.ts";
import { openGatewayFront } from "./gateway-front.ts";
import { type ModelUpstream, startModelUpstream, type UpstreamReply } from "./model-upstream.ts";

/** The host's key, which must never appear inside or in an event. */
export const CANARY = "sk-canary-5f1e0c9a7b3d";

export interface GatewayRig extends AsyncDisposable {
  upstream: ModelUpstream;
  /** The gateway's address, as it is inside a sandbox. */
  url: string;
  events: GatewayEvent[];
  /** Resolves when this many events have been emitted in total. */
  eventsAre(count: number): Promise<void>;
  post(path: string, body: unknown, more?: { headers?: Record<string, string>; signal?: AbortSignal }): Promise<Response>;
}

/**
 * Starts a gateway with a port in front of it and a test upstream behind it. For models whose name begins with
 * `priced`, an input token costs a dollar and an output token two.
 */
export async function openGatewayRig(replies: Record<string, UpstreamReply>, options: Partial<GatewayOptions> = {}): Promise<GatewayRig> {
  const upstream = await startModelUpstream(replies);
  const events: GatewayEvent[] = [];
  let nextEvent = Promise.withResolvers<void>();
  const gateway = createGateway({
    config: { wires: ["anthropic", "openai"] },
    upstreams: {
      anthropic: { baseUrl: upstream.url, key: async () => CANARY },
      openai: { baseUrl: `${upstream.url}/v1`, key: async () => CANARY },
    },
    readSpent: () => ({ costUsd: 0, tokens: 0 }),
    prices: (_wire, model, usage) => (model.startsWith("priced") ? usage.inputTokens + 2 * usage.outputTokens : null),
    redact: (text) => text.replaceAll("hunter2", "[secret PASSWORD]"),
    emit(event) {
      // Every emitted event must match the contract.
      GatewayCalled.parse({
        type: event.type,
        version: 1,
        at: new Date().toISOString(),
        data: { sandbox: "sb_aaaaaaaaaaaa", ...event.data },
      });
      events.push(event);
      nextEvent.resolve();
      nextEvent = Promise.withResolvers();
    },
    ...options,
  });
  const front = await openGatewayFront(gateway);
  return {
    upstream,
    url: front.url,
    events,
    async eventsAre(count) {
      while (events.length < count) await nextEvent.promise;
    },
    post: (path, body, more = {}) =>
      fetch(`${front.url}${path}`, {
        method: "POST",
        headers: { "content-type": "application/json", "x-api-key": "placeholder", authorization: "Bearer placeholder", ...more.headers },
        body: typeof body === "string" ? body : JSON.stringify(body),
        ...(more.signal ? { signal: more.signal } : {}),
      }),
    async [Symbol.asyncDispose]() {
      await front[Symbol.asyncDispose]();
      await upstream[Symbol.asyncDispose]();
    },
  };
}
