import { GatewayCalled } from "../../src/contract/network-event.ts";
import { createGateway } from "../../src/network/gateway/gateway.ts";
import type { GatewayEvent, GatewayOptions } from "../../src/network/gateway/gateway-options.ts";
import { openGatewayFront } from "./gateway-front.ts";
import { type ModelUpstream, startModelUpstream, type UpstreamReply } from "./model-upstream.ts";

/** The host's key, which nobody inside and no event may ever see. */
export const CANARY = "sk-canary-5f1e0c9a7b3d";

export interface GatewayRig extends AsyncDisposable {
  upstream: ModelUpstream;
  /** The gateway's address, as inside. */
  url: string;
  events: GatewayEvent[];
  /** Resolves when so many events were emitted in all. */
  eventsAre(count: number): Promise<void>;
  post(path: string, body: unknown, more?: { headers?: Record<string, string>; signal?: AbortSignal }): Promise<Response>;
}

/** A gateway with an upstream of the test's own behind it and a port before it. A token of input costs a dollar, one of output two, for models that begin with `priced`. */
export async function openGatewayRig(replies: Record<string, UpstreamReply>, options: Partial<GatewayOptions> = {}): Promise<GatewayRig> {
  const upstream = await startModelUpstream(replies);
  const events: GatewayEvent[] = [];
  let told = Promise.withResolvers<void>();
  const gateway = createGateway({
    spec: { wires: ["anthropic", "openai"] },
    upstreams: {
      anthropic: { baseUrl: upstream.url, key: async () => CANARY },
      openai: { baseUrl: `${upstream.url}/v1`, key: async () => CANARY },
    },
    spent: () => ({ costUsd: 0, tokens: 0 }),
    prices: (_wire, model, usage) => (model.startsWith("priced") ? usage.inputTokens + 2 * usage.outputTokens : null),
    redact: (text) => text.replaceAll("hunter2", "[secret PASSWORD]"),
    emit(event) {
      // Whatever is emitted must fit the contract.
      GatewayCalled.parse({
        type: event.type,
        version: 1,
        at: new Date().toISOString(),
        data: { sandbox: "sb_aaaaaaaaaaaa", ...event.data },
      });
      events.push(event);
      told.resolve();
      told = Promise.withResolvers();
    },
    ...options,
  });
  const front = await openGatewayFront(gateway);
  return {
    upstream,
    url: front.url,
    events,
    async eventsAre(count) {
      while (events.length < count) await told.promise;
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
