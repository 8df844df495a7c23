import { request as httpRequest, type IncomingMessage } from "node:http";
import type { Duplex } from "node:stream";
import { CaissonError } from "../../contract/error/error.ts";
import type { FetchRequest, FetchResult } from "../../sandbox/sandbox-network.ts";
import { authorityText, parseTargetHost, type TargetHost } from "../address/target-host.ts";
import { encodeRequestHead, type RequestHead } from "../http/head.ts";
import { type Header, header } from "../http/headers.ts";
import { decideRequest } from "./decide-egress.ts";
import { type Attempt, type Denial, explain, isDenial, isFailure } from "./denial.ts";
import type { EgressContext } from "./egress-context.ts";
import { readAnswer } from "./fetch-answer.ts";
import { hasSecrets, identityEncoding, injectSecrets, redactorFor } from "./forward-request.ts";
import type { Passage } from "./passages.ts";
import { connectPassage, openPassage } from "./passages.ts";

export interface Fetching {
  fetch(request: FetchRequest): Promise<FetchResult>;
  close(): void;
}

interface Hop {
  url: URL;
  host: TargetHost;
  port: number;
  tls: boolean;
  method: string;
  headers: readonly Header[];
  body: Uint8Array | null;
}

const redirects = new Set([301, 302, 303, 307, 308]);
/** Headers that identify the user. They are never sent to another origin. */
const credentials = new Set(["authorization", "cookie", "proxy-authorization"]);
/** Headers that we set ourselves. The caller's values are dropped. */
const ownHeaders = new Set([
  "host",
  "connection",
  "content-length",
  "transfer-encoding",
  "accept-encoding",
  "keep-alive",
  "te",
  "trailer",
  "upgrade",
  "expect",
]);

/** Creates the fetcher for requests that the host makes on an agent's behalf, under the rules of its sandbox. */
export function createFetch(context: EgressContext): Fetching {
  const closing = new AbortController();
  return {
    async fetch(request) {
      const late = AbortSignal.timeout(context.limits.fetchMs);
      const signal = AbortSignal.any([closing.signal, late, ...(request.signal === undefined ? [] : [request.signal])]);
      try {
        return await follow(context, request, signal);
      } catch (error) {
        if (late.aborted) throw new CaissonError("timeout", `no answer within ${context.limits.fetchMs} ms`, { cause: error });
        if (signal.aborted) throw new CaissonError("cancelled", "the request was cancelled", { cause: error });
        throw error;
      }
    },
    close: () => closing.abort(),
  };
}

async function follow(context: EgressContext, request: FetchRequest, signal: AbortSignal): Promise<FetchResult> {
  let hop = firstHop(request);
  for (let count = 0; ; count++) {
    const result = await oneHop(context, { hop, bytesMax: request.bytesMax, signal });
    if (isDenial(result)) {
      const { reason, text } = result;
      if (isFailure(reason)) throw new CaissonError("unavailable", explain(result, result.attempt), { details: { cause: reason } });
      return { denied: { reason, text } };
    }
    const { location } = result.headers;
    if (!redirects.has(result.status) || location === undefined) return result;
    if (count >= context.limits.redirectsMax) {
      throw new CaissonError("unavailable", `${hop.host.text} redirects more than ${context.limits.redirectsMax} times`);
    }
    hop = nextHop(hop, result.status, location);
  }
}

type Fetched = Exclude<FetchResult, { denied: unknown }>;

async function oneHop(context: EgressContext, options: { hop: Hop; bytesMax: number; signal: AbortSignal }): Promise<Fetched | Denial> {
  const { hop, signal } = options;
  const { host, port, method } = hop;
  const path = `${hop.url.pathname}${hop.url.search}`;
  signal.throwIfAborted();
  const decision = decideRequest(context.policy(), { host, port, method, path });
  const abandoned = new AbortController();
  const passage = await openPassage(context, {
    host,
    port,
    via: "fetch",
    client: { destroy: () => abandoned.abort() },
    method,
    path,
    decision,
  });
  if (isDenial(passage)) return passage;
  const stop = () => passage.destroy();
  signal.addEventListener("abort", stop, { once: true });
  try {
    return await exchange(context, { ...options, passage, path });
  } catch (error) {
    if (abandoned.signal.aborted && !signal.aborted)
      throw new CaissonError("cancelled", `${host.text} is no longer allowed`, { cause: error });
    throw error;
  } finally {
    signal.removeEventListener("abort", stop);
    passage.end();
  }
}

async function exchange(
  context: EgressContext,
  options: { hop: Hop; passage: Passage; path: string; bytesMax: number },
): Promise<Fetched | Denial> {
  const { hop, passage, path, bytesMax } = options;
  const { tls } = hop;
  const attempt: Attempt = { host: hop.host.text, port: hop.port, via: "fetch", method: hop.method, path };
  const connected = await connectPassage(context, { passage, attempt, tls, measured: true });
  if (isDenial(connected)) return connected;
  let request = headOf(hop, path);
  passage.request(hop.method, path);
  if (hasSecrets(context)) {
    const put = await injectSecrets(context, { request, attempt, tls });
    if ("why" in put) return context.deny(attempt, { reason: "secret_unavailable", why: put.why });
    for (const name of put.used) passage.usedSecret(name);
    request = put.request;
  }
  const out = tls ? redactorFor(context, attempt) : null;
  const answer = await send(connected, out === null ? request : identityEncoding(request), hop);
  const { status, headers, body, truncated } = await readAnswer(answer, { bytesMax, out });
  return { status, headers, body, truncated, url: hop.url.href };
}

/** Sends a request over the open connection, so Node resolves and connects nothing. */
function send(connected: Duplex, request: RequestHead, { host, body }: Hop): Promise<IncomingMessage> {
  // Rejects an invalid header before anything is sent.
  encodeRequestHead(request);
  return new Promise((resolve, reject) => {
    const sent = httpRequest({
      createConnection: () => connected,
      method: request.method,
      path: request.target,
      headers: request.headers.flatMap(({ name, value }) => [name, value]),
      setHost: false,
      setDefaultHeaders: false,
    });
    sent.once("response", resolve);
    sent.once("upgrade", (_answer, socket: Duplex) => {
      socket.destroy();
      reject(new CaissonError("unavailable", `${host.text} switched to another protocol`));
    });
    sent.on("error", (cause) => reject(new CaissonError("unavailable", `${host.text} did not answer: the connection failed`, { cause })));
    sent.end(body ?? undefined);
  });
}

function headOf({ method, host, port, tls, headers, body }: Hop, path: string): RequestHead {
  const own = [
    header("Host", authorityText(host, port, tls ? 443 : 80)),
    header("Connection", "close"),
    header("Accept-Encoding", "gzip, br, deflate"),
  ];
  const length = body !== null || method === "POST" || method === "PUT" ? [header("Content-Length", String(body?.byteLength ?? 0))] : [];
  return { method, target: path, version: "1.1", headers: [...own, ...headers, ...length] };
}

function firstHop({ url, method = "GET", headers = {}, body }: FetchRequest): Hop {
  const callerHeaders = Object.entries(headers).map(([name, value]) => header(name, value));
  return {
    ...placeOf(url),
    method,
    headers: callerHeaders.filter(({ lower }) => !ownHeaders.has(lower) && lower !== "proxy-authorization"),
    body: body ?? null,
  };
}

/** Follows a redirect as browsers do: a POST is repeated only after 307 and 308. */
function nextHop(hop: Hop, status: number, location: string): Hop {
  const place = placeOf(location, hop.url);
  const becomesGet = status === 303 ? hop.method !== "HEAD" : status < 303 && hop.method === "POST";
  const isSameOrigin = place.url.origin === hop.url.origin;
  return {
    ...place,
    method: becomesGet ? "GET" : hop.method,
    body: becomesGet ? null : hop.body,
    headers: hop.headers.filter(({ lower }) => (isSameOrigin || !credentials.has(lower)) && !(becomesGet && lower.startsWith("content-"))),
  };
}

/** Parses the URL. Throws `invalid` for anything but an http or https URL without credentials. */
function placeOf(text: string, base?: URL): Pick<Hop, "url" | "host" | "port" | "tls"> {
  if (!URL.canParse(text, base?.href)) throw new CaissonError("invalid", "not a URL", { hint: "Write it as https://example.com/path." });
  const url = new URL(text, base);
  const tls = url.protocol === "https:";
  if (!tls && url.protocol !== "http:")
    throw new CaissonError("invalid", `only http and https can be fetched, not ${url.protocol.slice(0, 40)}`);
  if (url.username !== "" || url.password !== "")
    throw new CaissonError("invalid", "the URL contains credentials", { hint: "Send them in a header." });
  url.hash = "";
  const host = parseTargetHost(url.hostname);
  if (host === null) throw new CaissonError("invalid", "the URL has no valid host");
  return { url, host, port: url.port === "" ? (tls ? 443 : 80) : Number(url.port), tls };
}
