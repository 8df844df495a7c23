import type { Duplex } from "node:stream";
import type { NetworkVia } from "../../contract/network/network-event.ts";
import { relayHttp } from "../http/relay.ts";
import type { EgressContext } from "./egress-context.ts";
import { relayLimitsOf } from "./egress-limits.ts";
import { endTls } from "./end-tls.ts";
import type { Passage } from "./passages.ts";
import { createTunnelRequests } from "./tunnel-requests.ts";

interface InspectOptions {
  client: Duplex;
  /** Bytes that were already read from the client. */
  first: Buffer;
  passage: Passage;
  via: NetworkVia;
}

/**
 * Intercepts a TLS connection: terminates the client's TLS with a certificate from the sandbox's own authority, sees
 * each request, and speaks verified TLS to the real host. Resolves when the connection has ended; never rejects.
 */
export async function inspectTls(context: EgressContext, { client, first, passage, via }: InspectOptions): Promise<void> {
  passage.inspect();
  const tls = endTls(context, { client, first, host: passage.grant.host });
  if (tls === null) return;
  const { decide } = createTunnelRequests(context, { passage, via, tls: true, upstream: null });
  await relayHttp(tls, { decide, limits: relayLimitsOf(context.limits), onBytes: passage.count });
  client.destroy();
}
