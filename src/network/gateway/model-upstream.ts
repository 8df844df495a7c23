import http, { type IncomingMessage, type OutgoingHttpHeaders } from "node:http";
import https from "node:https";
import { getCACertificates } from "node:tls";
import { CaissonError } from "../../contract/error/error.ts";
import type { GatewayWire } from "../../contract/network/network.ts";
import { withoutTrailingSlashes } from "../../contract/trailing-slashes.ts";
import type { GatewayOptions } from "./gateway-options.ts";

const providers: Record<GatewayWire, string> = { anthropic: "https://api.anthropic.com", openai: "https://api.openai.com/v1" };
const FREE_SOCKETS_MAX = 8;
const FREE_SOCKET_MS = 60_000;

interface UpstreamRequest {
  url: URL;
  method: string;
  headers: OutgoingHttpHeaders;
  body: Buffer | null;
  signal: AbortSignal;
  /** Called when the whole request was handed over. */
  onSent: () => void;
}

/** Sends requests to upstreams over keep-alive connections. */
export interface UpstreamClient {
  /**
   * Resolves with the head of the answer. Throws `unavailable` if the upstream cannot be reached or verified; rejects
   * with the signal's reason.
   */
  send(request: UpstreamRequest): Promise<IncomingMessage>;
  close(): void;
}

export function createUpstreamClient(options: Pick<GatewayOptions, "agents" | "upstreamCa">): UpstreamClient {
  const agentOptions = { keepAlive: true, maxFreeSockets: FREE_SOCKETS_MAX, timeout: FREE_SOCKET_MS };
  const ca = options.upstreamCa ? { ca: [...getCACertificates("default"), ...getCACertificates("system"), ...options.upstreamCa] } : {};
  const plain = options.agents?.http ?? new http.Agent(agentOptions);
  // Explicit, so that no environment variable can turn it off.
  const secure = options.agents?.https ?? new https.Agent({ ...agentOptions, ...ca, rejectUnauthorized: true });
  return {
    async send(request) {
      try {
        // A kept-alive connection that the upstream had already closed never carried the request, so we send it once
        // more.
        const answer = (await sendOnce(request, { plain, secure })) ?? (await sendOnce(request, { plain, secure }));
        if (answer) return answer;
      } catch (error) {
        throw unreachable(error, request);
      }
      throw unreachable(undefined, request);
    },
    close() {
      if (!options.agents?.http) plain.destroy();
      if (!options.agents?.https) secure.destroy();
    },
  };
}

/** Returns the URL of a route at an upstream. Anthropic's base URL is written with or without the version. */
export function upstreamUrl(options: { wire: GatewayWire; baseUrl: string | undefined; path: string; query: string }): URL {
  const base = withoutTrailingSlashes(options.baseUrl ?? providers[options.wire]);
  const versioned = options.wire === "anthropic" ? `${base.replace(/\/v1$/, "")}/v1` : base;
  return new URL(`${versioned}${options.path}${options.query}`);
}

/** Returns null if the connection was a kept-alive one that turned out to be closed. */
function sendOnce(request: UpstreamRequest, agents: { plain: http.Agent; secure: https.Agent }): Promise<IncomingMessage | null> {
  const { url, method, headers, signal } = request;
  return new Promise((resolve, reject) => {
    const outgoing =
      url.protocol === "https:"
        ? https.request(url, { method, headers, signal, agent: agents.secure })
        : http.request(url, { method, headers, signal, agent: agents.plain });
    outgoing.once("response", (answer) => {
      // Until the caller reads it, a broken connection must not be an uncaught error.
      answer.on("error", () => undefined);
      resolve(answer);
    });
    outgoing.on("error", (error: NodeJS.ErrnoException) => {
      if (outgoing.reusedSocket && (error.code === "ECONNRESET" || error.code === "EPIPE")) resolve(null);
      else reject(error);
    });
    outgoing.once("finish", request.onSent);
    outgoing.end(request.body ?? undefined);
  });
}

function unreachable(error: unknown, request: UpstreamRequest): unknown {
  if (request.signal.aborted) return request.signal.reason;
  const code = (error as NodeJS.ErrnoException | undefined)?.code ?? "the connection was closed";
  return new CaissonError("unavailable", `the model's server could not be reached from the host (${code})`, { cause: error });
}
