import type { Duplex } from "node:stream";
import { authorityText, parseTargetHost, type TargetHost } from "../address/target-host.ts";
import type { RequestHead } from "../http/head.ts";
import { requestTarget } from "../http/head.ts";
import { relayHttp } from "../http/relay.ts";
import type { RelayVerdict } from "../http/relay-options.ts";
import { forwardToMirror, isMirrored } from "./carry-to-mirror.ts";
import { decideRequest } from "./decide-egress.ts";
import { type Denial, denialAnswer, isDenial } from "./denial.ts";
import type { EgressContext } from "./egress-context.ts";
import { relayLimitsOf } from "./egress-limits.ts";
import { endWithAlert } from "./end-tls.ts";
import type { FakeNames } from "./fake-names.ts";
import { nextBytes, readBeginning } from "./first-bytes.ts";
import { toOrigin } from "./forward-request.ts";
import { createPlainPassages } from "./plain-passages.ts";
import { carryTunnel, openTunnel } from "./tunnel.ts";

interface TransparentOptions {
  client: Duplex;
  destination: { address: string; port: number };
  names: FakeNames;
}

/**
 * Serves a connection of a program that is unaware of the proxy. We look for the destination in this order: the name
 * that we invented the address for, the name in the TLS or HTTP data, the address itself. If the data contains a name,
 * we resolve it ourselves and ignore the address that the program connected to. Resolves when the connection has ended;
 * never rejects.
 */
export async function serveTransparent(context: EgressContext, { client, destination, names }: TransparentOptions): Promise<void> {
  const { address, port } = destination;
  const knownHost = names.nameOf(address);
  if (knownHost !== null) return await carryTo(context, { host: knownHost, port, client, first: Buffer.alloc(0) });
  const { limits } = context;
  const { beginning, bytes } = await readBeginning({
    first: Buffer.alloc(0),
    bytesMax: limits.helloBytesMax,
    wait: () => nextBytes(client, { timeoutMs: limits.silentMs }),
  });
  if (beginning.kind === "http") return await serveByHost(context, { client, destination, first: bytes });
  const named = beginning.kind === "hello" && beginning.serverName !== null ? parseTargetHost(beginning.serverName) : null;
  const host = named ?? parseTargetHost(address);
  if (host === null) return void client.destroy();
  await carryTo(context, { host, port, client, first: bytes });
}

interface CarryOptions {
  host: TargetHost;
  port: number;
  client: Duplex;
  first: Buffer;
}

async function carryTo(context: EgressContext, options: CarryOptions): Promise<void> {
  const { client, first } = options;
  let tunnel: Awaited<ReturnType<typeof openTunnel>>;
  try {
    tunnel = await openTunnel(context, { ...options, via: "transparent" });
  } catch (error) {
    return await tell(context, options, { error });
  }
  if (isDenial(tunnel)) return await tell(context, options, { denial: tunnel });
  await carryTunnel(context, { ...tunnel, client, first, via: "transparent" });
}

/** Sends the reason in the client's own protocol if it is one that we speak. */
async function tell(context: EgressContext, { client, first }: CarryOptions, why: { denial: Denial } | { error: unknown }): Promise<void> {
  const { limits } = context;
  const { beginning, bytes } = await readBeginning({
    first,
    bytesMax: limits.helloBytesMax,
    wait: () => nextBytes(client, { timeoutMs: limits.silentMs }),
  });
  if (beginning.kind === "hello") return endWithAlert(client, "denial" in why ? why.denial : { reason: "unavailable" });
  if (beginning.kind !== "http") return void client.destroy();
  const decide = (): RelayVerdict => {
    if ("error" in why) throw why.error;
    return { ...denialAnswer(why.denial), close: true };
  };
  await relayHttp(client, { decide, limits: relayLimitsOf(limits) }, bytes);
}

/** Serves requests whose Host names the destination, on the port that the client connected to. */
async function serveByHost(
  context: EgressContext,
  options: { client: Duplex; destination: TransparentOptions["destination"]; first: Buffer },
): Promise<void> {
  const { client, destination, first } = options;
  const { address, port } = destination;
  const passages = createPlainPassages(context, { client, via: "transparent" });
  const decide = (head: RequestHead): RelayVerdict | Promise<RelayVerdict> => {
    const target = requestTarget(head);
    const host = parseTargetHost(target.host === "" ? address : target.host);
    const request = { host: host?.text ?? "", port, via: "transparent", method: head.method, path: target.path } as const;
    const isForUs = target.form === "origin" || target.form === "asterisk";
    if (host === null || !isForUs) return denialAnswer(context.deny(request, { reason: "bad_request" }));
    if ((target.port ?? port) !== port)
      return denialAnswer(context.deny(request, { reason: "name_mismatch", why: "the Host header names another port" }));
    if (isMirrored(context, { host, port })) return forwardToMirror(context, { host, port, head, path: target.path });
    const decision = decideRequest(context.policy(), { host, port, method: head.method, path: target.path });
    if (!decision.allowed) return denialAnswer(context.deny(request, decision));
    return passages.forward({
      grant: decision.grant,
      request: toOrigin(head, { path: target.path, authority: authorityText(host, port, 80) }),
    });
  };
  await relayHttp(client, { decide, limits: relayLimitsOf(context.limits) }, first);
  passages.close();
}
