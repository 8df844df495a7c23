import { type Agent, Agent as HttpAgent, request as httpRequest, type IncomingMessage } from "node:http";
import { Agent as HttpsAgent, request as httpsRequest } from "node:https";
import { isIP, type LookupFunction } from "node:net";
import type { Readable } from "node:stream";
import { getCACertificates } from "node:tls";
import { CaissonError } from "../../contract/error/error.ts";

export interface UpstreamRequest {
  url: URL;
  headers: Record<string, string>;
  signal?: AbortSignal;
}

export interface UpstreamResponse {
  status: number;
  /** Names are in lower case. */
  headers: Record<string, string | undefined>;
  /** Ends with an error if the transfer breaks off before its announced length. */
  body: Readable;
  /** The address of the server that answered; empty if unknown. */
  address: string;
}

/** Sends one request without following redirects. Rejects if no head was received. */
export type Get = (request: UpstreamRequest) => Promise<UpstreamResponse>;

export interface Upstream {
  /**
   * Sends a GET and follows redirects. Throws `unavailable` if the registry cannot be reached (which is then not tried
   * again for a while), `timeout`, or `protocol` for a redirect to a place where no registry should lead.
   */
  get(request: UpstreamRequest): Promise<UpstreamResponse>;
  close(): void;
}

const REDIRECTS_MAX = 5;
const HEAD_MS = 30_000;
const IDLE_MS = 60_000;
const SOCKETS_PER_HOST_MAX = 24;
/**
 * How long we wait before we ask an unreachable registry again. Without this pause, an install without a network would
 * wait for each of its packages.
 */
const DOWN_MS = 15_000;
const HOSTS_DOWN_MAX = 100;
/** Replaces the User-Agent of the program inside. */
const USER_AGENT = "caisson-mirror";

export function createUpstream(options: { lookup?: LookupFunction; ca?: readonly string[]; get?: Get; now?: () => number }): Upstream {
  const now = options.now ?? Date.now;
  const agents = createAgents(options);
  const get = options.get ?? ((request) => getOnce(request, agents));
  const down = new Map<string, { untilMs: number; cause: unknown }>();
  return {
    async get(request) {
      let { url } = request;
      for (let redirects = 0; redirects <= REDIRECTS_MAX; redirects++) {
        const known = down.get(url.origin);
        if (known !== undefined && known.untilMs > now()) throw unreachable(url, known.cause);
        const headers = { ...request.headers, "user-agent": USER_AGENT };
        const response = await get({ ...request, url, headers }).catch((cause: unknown) => {
          if (request.signal?.aborted) throw new CaissonError("cancelled", `the request to ${url.host} was abandoned`, { cause });
          if (down.size >= HOSTS_DOWN_MAX) down.clear();
          down.set(url.origin, { untilMs: now() + DOWN_MS, cause });
          throw unreachable(url, cause);
        });
        down.delete(url.origin);
        // The reader will handle errors, but the body may break before it has one.
        response.body.on("error", () => undefined);
        if (![301, 302, 303, 307, 308].includes(response.status)) return response;
        response.body.destroy();
        url = redirectTarget(url, response.headers.location, request.url);
      }
      throw new CaissonError("protocol", `${request.url.host} redirects too many times`);
    },
    close: () => agents.close(),
  };
}

interface Agents {
  http: Agent;
  /** Created on first use, because reading the certificate stores takes a while. */
  https(): Agent;
  close(): void;
}

function createAgents({ lookup, ca = [] }: { lookup?: LookupFunction; ca?: readonly string[] }): Agents {
  const common = { keepAlive: true, maxSockets: SOCKETS_PER_HOST_MAX, ...(lookup === undefined ? {} : { lookup }) };
  const http = new HttpAgent(common);
  let https: Agent | undefined;
  return {
    http,
    https() {
      https ??= new HttpsAgent({ ...common, ca: [...getCACertificates("default"), ...getCACertificates("system"), ...ca] });
      return https;
    },
    close() {
      http.destroy();
      https?.destroy();
    },
  };
}

function unreachable(url: URL, cause: unknown): CaissonError {
  const why = cause instanceof Error ? `: ${cause.message || (cause as NodeJS.ErrnoException).code}` : "";
  return new CaissonError("unavailable", `${url.host} cannot be reached${why}`, { cause });
}

function redirectTarget(from: URL, location: string | undefined, first: URL): URL {
  const target = location === undefined || !URL.canParse(location, from.href) ? null : new URL(location, from);
  if (target === null) throw new CaissonError("protocol", `${from.host} redirects without a valid location`);
  if (!mayLead(first, target)) throw new CaissonError("protocol", `${from.host} redirects to ${target.origin}, which is not allowed`);
  return target;
}

/**
 * Checks whether a registry may redirect us to another place: never from TLS to plain HTTP, and never to a bare IP
 * address, because the lookup, which refuses forbidden addresses, does not see it.
 */
export function mayLead(from: URL, to: URL): boolean {
  if (to.origin === from.origin && to.username === "") return true;
  const bare = isIP(to.hostname.replace(/^\[(.*)\]$/, "$1")) !== 0;
  const secureEnough = to.protocol === "https:" || (to.protocol === "http:" && from.protocol === "http:");
  return secureEnough && !bare && to.username === "";
}

function getOnce({ url, headers, signal }: UpstreamRequest, agents: Agents): Promise<UpstreamResponse> {
  return new Promise((resolve, reject) => {
    const secure = url.protocol === "https:";
    const send = secure ? httpsRequest : httpRequest;
    const request = send(url, { method: "GET", headers, agent: secure ? agents.https() : agents.http });
    const head = setTimeout(() => request.destroy(new Error("the request timed out")), HEAD_MS);
    request.setTimeout(IDLE_MS, () => request.destroy(new Error("the connection was silent for too long")));
    // We do not use the request's own `signal`: between the end of an answer and the release of its socket, it throws
    // where nothing can catch it.
    let abort = () => void request.destroy(new Error("aborted"));
    const onAbort = () => abort();
    signal?.addEventListener("abort", onAbort);
    if (signal?.aborted) abort();
    request.on("error", (error) => {
      clearTimeout(head);
      signal?.removeEventListener("abort", onAbort);
      reject(error);
    });
    request.once("response", (response: IncomingMessage) => {
      clearTimeout(head);
      abort = () => void response.destroy(new Error("aborted"));
      response.once("close", () => signal?.removeEventListener("abort", onAbort));
      resolve({
        status: response.statusCode ?? 0,
        headers: Object.fromEntries(Object.entries(response.headers).map(([name, value]) => [name, value?.toString()])),
        body: response,
        address: response.socket.remoteAddress ?? "",
      });
    });
    request.end();
  });
}
