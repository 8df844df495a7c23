import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { Duplex } from "node:stream";
import { CaissonError } from "../../contract/error/error.ts";
import { GATEWAY_PORT } from "../sandbox-setup/ports.ts";
import { type CallSetting, carryOut } from "./call.ts";
import { createCallSlots } from "./call-slots.ts";
import { type Gateway, type GatewayOptions, gatewayLimits } from "./gateway-options.ts";
import { createLedger } from "./ledger.ts";
import { createUpstreamClient } from "./model-upstream.ts";
import { createRecorder } from "./recorder.ts";
import { createBodyReader } from "./request-body.ts";
import { matchRoute } from "./routes.ts";
import { wireError } from "./wire-error.ts";

/**
 * Offers models to programs inside a sandbox without giving them a key: an HTTP server for connections that arrive as
 * streams. It speaks the protocols of Anthropic's and OpenAI's clients, forwards calls with the host's key, and meters,
 * limits and records them.
 */
export function createGateway(options: GatewayOptions): Gateway {
  const limits = { ...gatewayLimits, ...options.limits };
  const setting: CallSetting = {
    options,
    limits,
    slots: createCallSlots(limits),
    bodies: createBodyReader(limits),
    ledger: createLedger({ ...options, waitingMs: limits.waitingMs }),
    recorder: createRecorder({ emit: options.emit, freeEventsPerMinute: limits.freeEventsPerMinute }),
    client: createUpstreamClient(options),
  };
  const closing = new AbortController();
  const calls = new Set<Promise<void>>();
  const connections = createConnections(limits.connectionIdleMs);
  // Node's own time limits only work on sockets, so we enforce those of connections and calls ourselves.
  const server = createServer({ requestTimeout: 0, headersTimeout: 0, keepAliveTimeout: 0 }, (request, response) => {
    connections.busy(request, response);
    const call = answer({ setting, request, response, closing: closing.signal });
    calls.add(call);
    void call.finally(() => calls.delete(call));
  });
  server.on("clientError", (_error, stream) => {
    if (stream.writable) stream.end("HTTP/1.1 400 Bad Request\r\nconnection: close\r\ncontent-length: 0\r\n\r\n");
    else stream.destroy();
  });
  return {
    handle({ stream }) {
      stream.on("error", () => undefined);
      if (closing.signal.aborted || connections.size() >= limits.connectionsMax) return void stream.destroy();
      connections.add(stream);
      server.emit("connection", stream);
    },
    async close() {
      closing.abort();
      // Pending calls are answered with an error before their connections close.
      await Promise.all(calls);
      connections.destroyAll();
      setting.client.close();
    },
  };
}

interface Request {
  setting: CallSetting;
  request: IncomingMessage;
  response: ServerResponse;
  closing: AbortSignal;
}

async function answer({ setting, request, response, closing }: Request): Promise<void> {
  const { method = "GET", url = "/", headers } = request;
  if (method === "OPTIONS") return void response.writeHead(204, { allow: "GET, HEAD, POST, OPTIONS" }).end();
  // Some clients check the endpoint with HEAD, which needs no call.
  const match = matchRoute({ method: method === "HEAD" ? "GET" : method, url, headers });
  if (match.found === "about" || (method === "HEAD" && match.found === "route")) {
    return void response.writeHead(200, { "content-type": "text/plain; charset=utf-8" }).end(about(setting.options));
  }
  if (match.found === "route") return await carryOut({ setting, request, response, closing, ...match });
  const error =
    match.found === "otherMethod"
      ? new CaissonError("invalid", `this path does not accept ${method}`, {
          details: { allow: match.allow, upgrade: headers.upgrade !== undefined },
        })
      : new CaissonError("not_found", `the gateway has no endpoint ${method} ${url.slice(0, 200)}`, {
          hint: "Send GET / for a description of the gateway.",
        });
  const refusal = wireError(match.wire, error);
  response.writeHead(refusal.status, refusal.headers).end(refusal.body);
}

function about({ config, upstreams }: GatewayOptions): string {
  const there = config.wires.filter((wire) => upstreams[wire]);
  const base = `http://127.0.0.1:${GATEWAY_PORT}`;
  return [
    "Caisson's model gateway. The host holds the keys, and meters and records every call. Any key that you send is ignored.",
    there.includes("anthropic") ? `ANTHROPIC_BASE_URL=${base}/anthropic` : "",
    there.includes("openai") ? `OPENAI_BASE_URL=${base}/openai/v1` : "",
    there.length === 0 ? "The host has no key for any provider." : "",
    `Models: ${config.models?.join(", ") ?? "all"}.`,
    "",
  ]
    .filter((line, index) => line !== "" || index === 5)
    .join("\n");
}

/** Tracks the open streams, and drops each that stays without a request for too long. */
function createConnections(idleMs: number) {
  const timers = new Map<Duplex, { timer: NodeJS.Timeout | undefined; requests: number }>();
  const idle = (stream: Duplex) => setTimeout(() => stream.destroy(), idleMs).unref();
  return {
    size: () => timers.size,
    add(stream: Duplex) {
      timers.set(stream, { timer: idle(stream), requests: 0 });
      stream.once("close", () => {
        clearTimeout(timers.get(stream)?.timer);
        timers.delete(stream);
      });
    },
    busy(request: IncomingMessage, response: ServerResponse) {
      const stream: Duplex = request.socket;
      const state = timers.get(stream);
      if (!state) return;
      clearTimeout(state.timer);
      state.requests += 1;
      response.once("close", () => {
        state.requests -= 1;
        if (state.requests === 0 && timers.has(stream)) state.timer = idle(stream);
      });
    },
    destroyAll() {
      for (const stream of timers.keys()) stream.destroy();
    },
  };
}
