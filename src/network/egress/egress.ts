import type { Duplex } from "node:stream";
import { parseTargetHost } from "../address/target-host.ts";
import { type RequestHead, type RequestTarget, requestTarget } from "../http/head.ts";
import { relayHttp } from "../http/relay.ts";
import type { RelayVerdict } from "../http/relay-options.ts";
import { resetStream } from "../http/reset-stream.ts";
import { type Attempt, type Denial, denialAnswer, isDenial } from "./denial.ts";
import { createEgressContext, type EgressContext } from "./egress-context.ts";
import { relayLimitsOf } from "./egress-limits.ts";
import type { Egress, EgressOptions } from "./egress-options.ts";
import { createFakeNames } from "./fake-names.ts";
import { createFetch } from "./fetch.ts";
import { nextBytes } from "./first-bytes.ts";
import { createPlainRequests } from "./plain-requests.ts";
import { serveSocks } from "./socks.ts";
import { serveTransparent } from "./transparent.ts";
import { carryTunnel, openTunnel } from "./tunnel.ts";

const SOCKS5_VERSION = 5;

/**
 * Creates the outbound network of one sandbox. Everything that leaves the sandbox is checked, resolved, connected and
 * counted here.
 */
export function createEgress(options: EgressOptions): Egress {
  const context = createEgressContext(options);
  const { limits, passages, denials } = context;
  const names = createFakeNames({ namesMax: limits.namesMax });
  const fetching = createFetch(context);
  const live = new Map<Duplex, Promise<void>>();
  let closed = false;
  return {
    handle({ stream: client, destination }) {
      client.on("error", () => {});
      if (closed) return void client.destroy();
      if (live.size >= limits.connectionsMax) return turnAway(context, client, destination);
      const served = destination === null ? serveProxy(context, client) : serveTransparent(context, { client, destination, names });
      const over = served.catch(() => void client.destroy()).then(() => untilClosed(client, limits.lingerMs));
      live.set(
        client,
        over.then(() => void live.delete(client)),
      );
    },
    answerName: names.answerName,
    fetch: fetching.fetch,
    enforce: () => passages.enforce(options.policy(), options.secrets),
    settle: () => denials.flush(),
    async close() {
      fetching.close();
      passages.destroyAll();
      closed = true;
      for (const client of live.keys()) resetStream(client);
      await Promise.all(live.values());
      denials.flush();
    },
    stats() {
      const { sent, received } = passages.bytes();
      return { connections: live.size, sentBytes: sent, receivedBytes: received };
    },
  };
}

/** Serves a program that uses the proxy: SOCKS5 or HTTP, by the first byte. */
async function serveProxy(context: EgressContext, client: Duplex): Promise<void> {
  const next = await nextBytes(client, { timeoutMs: context.limits.firstBytesMs });
  if (next.kind !== "bytes") return void client.destroy();
  const first = next.bytes;
  if (first[0] === SOCKS5_VERSION) return await serveSocks(context, { client, first });
  const plain = createPlainRequests(context, client);
  let tunnelled: Promise<void> | undefined;
  const onTunnel = (done: Promise<void>) => {
    tunnelled = done;
  };
  const decide = (head: RequestHead) => {
    const target = requestTarget(head);
    return target.form === "authority" ? decideConnect(context, { target, client, onTunnel }) : plain.decide(head, target);
  };
  const onBadRequest = (error: Error) => {
    context.deny({ host: "", port: 0, via: "http", method: null, path: null }, { reason: "bad_request", why: error.message });
  };
  await relayHttp(client, { decide, onBadRequest, limits: relayLimitsOf(context.limits) }, first);
  await tunnelled;
  plain.close();
}

/** Answers a CONNECT. The tunnel ends with the client, even if the client disconnects before the answer. */
async function decideConnect(
  context: EgressContext,
  options: { target: RequestTarget; client: Duplex; onTunnel: (done: Promise<void>) => void },
): Promise<RelayVerdict> {
  const { target, client, onTunnel } = options;
  const host = parseTargetHost(target.host);
  const port = target.port ?? 443;
  if (host === null) {
    const attempt: Attempt = { host: "", port, via: "http", method: "CONNECT", path: target.path };
    return denialAnswer(context.deny(attempt, { reason: "bad_request", why: "the target is not a valid host" }));
  }
  const tunnel = await openTunnel(context, { host, port, client, via: "connect" });
  if (isDenial(tunnel)) return { ...denialAnswer(tunnel), close: true };
  return {
    kind: "take",
    // Called even if the client has disconnected. The tunnel then ends at once.
    take: (socket, first) => onTunnel(carryTunnel(context, { ...tunnel, client: socket, first, via: "connect" })),
  };
}

/** Rejects a connection without reading its request, so that rejecting costs nothing. */
function turnAway(context: EgressContext, client: Duplex, destination: { address: string; port: number } | null): void {
  const via = destination === null ? "http" : "transparent";
  const attempt: Attempt = { host: destination?.address ?? "", port: destination?.port ?? 0, via, method: null, path: null };
  const denial: Denial = context.deny(attempt, { reason: "too_many" });
  if (destination !== null) return void client.destroy();
  const { status, reason, headers = [], body = "" } = denialAnswer(denial);
  const lines = [
    `HTTP/1.1 ${status} ${reason}`,
    ...headers.map(([name, value]) => `${name}: ${value}`),
    `content-length: ${Buffer.byteLength(body)}`,
    "connection: close",
  ];
  client.end(`${lines.join("\r\n")}\r\n\r\n${body}`);
  void untilClosed(client, context.limits.lingerMs);
}

/** Gives a client time to read its answer before the connection is destroyed. */
function untilClosed(client: Duplex, lingerMs: number): Promise<void> {
  return new Promise((resolve) => {
    if (client.destroyed) return resolve();
    const timer = setTimeout(() => client.destroy(), lingerMs);
    client.once("close", () => {
      clearTimeout(timer);
      resolve();
    });
    client.resume();
    client.end();
  });
}
