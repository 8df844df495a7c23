import type { Duplex } from "node:stream";
import { TLSSocket } from "node:tls";
import type { NetworkVia } from "../../contract/network-event.ts";
import { relayHttp } from "../http/relay.ts";
import { ACCESS_DENIED_ALERT } from "./client-hello.ts";
import type { EgressContext } from "./egress-context.ts";
import { relayLimitsOf } from "./egress-limits.ts";
import type { Passage } from "./passages.ts";
import { createTunnelRequests } from "./tunnel-requests.ts";

interface InspectOptions {
  client: Duplex;
  /** Bytes of the client that were read already. */
  first: Buffer;
  passage: Passage;
  via: NetworkVia;
}

/**
 * Stands between: ends the client's TLS with a certificate of the sandbox's own authority, sees each request, and
 * speaks verified TLS to the real host. Only HTTP/1.1 is offered. Resolves when it is over; never rejects.
 */
export async function inspectTls(context: EgressContext, { client, first, passage, via }: InspectOptions): Promise<void> {
  passage.inspect();
  let secureContext: ReturnType<EgressContext["authority"]["contextFor"]>;
  try {
    secureContext = context.authority.contextFor(passage.grant.host.text);
  } catch {
    return void client.end(ACCESS_DENIED_ALERT, () => client.destroy());
  }
  if (first.length > 0) client.unshift(first);
  const tls = new TLSSocket(client as ConstructorParameters<typeof TLSSocket>[0], {
    isServer: true,
    secureContext,
    ALPNProtocols: ["http/1.1"],
  });
  tls.on("error", () => tls.destroy());
  client.once("close", () => tls.destroy());
  endUnlessSecure(tls, context.limits.handshakeMs);
  const { decide } = createTunnelRequests(context, { passage, via, tls: true, upstream: null });
  await relayHttp(tls, { decide, limits: relayLimitsOf(context.limits), onBytes: passage.count });
  client.destroy();
}

/** For a client that never finishes the handshake. */
function endUnlessSecure(tls: TLSSocket, timeoutMs: number): void {
  const timer = setTimeout(() => tls.destroy(), timeoutMs);
  tls.once("secure", () => clearTimeout(timer));
  tls.once("close", () => clearTimeout(timer));
}
