import type { Duplex } from "node:stream";
import type { InboundConnection } from "../../sandbox/sandbox.ts";
import { relayHttp } from "../http/relay.ts";
import { resetStream } from "../http/reset-stream.ts";
import type { Taken } from "./connect.ts";
import { type Denial, denialAnswer } from "./denial.ts";
import type { EgressContext } from "./egress-context.ts";
import type { FakeNames } from "./fake-names.ts";
import { nextBytes } from "./first-bytes.ts";
import { relayLimitsOf } from "./inspect.ts";
import { createProxyRequests } from "./proxy-requests.ts";
import { serveSocks } from "./socks.ts";
import { serveTransparent } from "./transparent.ts";

export interface Proxy {
  handle(connection: InboundConnection): void;
  connections(): number;
  /** Destroys every connection; resolves when all of them have come to their end. */
  close(): Promise<void>;
}

const SOCKS5_VERSION = 5;

export function createProxy(context: EgressContext, names: FakeNames): Proxy {
  const live = new Map<Duplex, Promise<void>>();
  let closed = false;
  return {
    handle({ stream: client, destination }) {
      client.on("error", () => {});
      if (closed) return void client.destroy();
      if (live.size >= context.limits.connectionsMax) {
        const asked = {
          host: destination?.address ?? "",
          port: destination?.port ?? 0,
          via: destination === null ? "http" : "transparent",
          method: null,
          path: null,
        } as const;
        const denial = context.deny(asked, { reason: "too_many" });
        return destination === null ? turnAway(context, client, denial) : void client.destroy();
      }
      const served = destination === null ? serve(context, client) : serveTransparent(context, { client, destination, names });
      const over = served.catch(() => void client.destroy()).then(() => gone(client, context.limits.lingerMs));
      live.set(
        client,
        over.then(() => void live.delete(client)),
      );
    },
    connections: () => live.size,
    async close() {
      closed = true;
      for (const client of live.keys()) resetStream(client);
      await Promise.all(live.values());
    },
  };
}

async function serve(context: EgressContext, client: Duplex): Promise<void> {
  const next = await nextBytes(client, { timeoutMs: context.limits.firstBytesMs });
  if (next.kind !== "bytes") return void client.destroy();
  const first = next.bytes;
  if (first[0] === SOCKS5_VERSION) return await serveSocks(context, { client, first });
  let taken: Taken | null = null;
  const requests = createProxyRequests(context, {
    client,
    onTaken: (each) => {
      taken = each;
    },
  });
  const onBadRequest = (error: Error) => {
    context.deny({ host: "", port: 0, via: "http", method: null, path: null }, { reason: "bad_request", why: error.message });
  };
  await relayHttp(client, { decide: requests.decide, onBadRequest, limits: relayLimitsOf(context.limits) }, first);
  await (taken as Taken | null)?.done;
  requests.close();
}

/** Without reading a request, so that it costs nothing. */
function turnAway({ limits }: EgressContext, client: Duplex, denial: Denial): void {
  const { status, reason, headers = [], body = "" } = denialAnswer(denial);
  const lines = [
    `HTTP/1.1 ${status} ${reason}`,
    ...headers.map(([name, value]) => `${name}: ${value}`),
    `content-length: ${Buffer.byteLength(body)}`,
    "connection: close",
  ];
  client.end(`${lines.join("\r\n")}\r\n\r\n${body}`);
  void gone(client, limits.lingerMs);
}

/** Waits until a client has read what it was told, for a while. */
function gone(client: Duplex, lingerMs: number): Promise<void> {
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
