import type { Duplex } from "node:stream";
import { TLSSocket } from "node:tls";
import type { TargetHost } from "../address/target-host.ts";
import { ACCESS_DENIED_ALERT, REFUSED_BY_NAME_ALERT } from "./client-hello.ts";
import type { Refusal } from "./denial.ts";
import type { EgressContext } from "./egress-context.ts";

/**
 * Terminates a client's TLS with a certificate from the sandbox's own authority, offering only HTTP/1.1. Returns null
 * if the host cannot have a certificate; the client then gets an alert.
 */
export function endTls(context: EgressContext, options: { client: Duplex; first: Buffer; host: TargetHost }): TLSSocket | null {
  const { client, first, host } = options;
  let secureContext: ReturnType<EgressContext["authority"]["contextFor"]>;
  try {
    secureContext = context.authority.contextFor(host.text);
  } catch {
    client.end(ACCESS_DENIED_ALERT, () => client.destroy());
    return null;
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
  return tls;
}

/** Ends the connection with a TLS alert, which clients report as such. A bare close looks like a broken network. */
export function endWithAlert(client: Duplex, { reason }: Refusal): void {
  const alert = reason === "name_mismatch" || reason === "host_not_allowed" ? REFUSED_BY_NAME_ALERT : ACCESS_DENIED_ALERT;
  client.end(alert, () => client.destroy());
}

/** Drops a client that never finishes the handshake. */
function endUnlessSecure(tls: TLSSocket, timeoutMs: number): void {
  const timer = setTimeout(() => tls.destroy(), timeoutMs);
  tls.once("secure", () => clearTimeout(timer));
  tls.once("close", () => clearTimeout(timer));
}
