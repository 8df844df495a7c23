import type { Duplex } from "node:stream";
import type { NetworkVia } from "../../contract/network-event.ts";
import type { TargetHost } from "../address/target-host.ts";
import { pump } from "../http/pump.ts";
import { relayHttp } from "../http/relay.ts";
import { mustInspect } from "./decide-egress.ts";
import { askedOf, type Denial, isDenial, type Refusal } from "./denial.ts";
import type { EgressContext } from "./egress-context.ts";
import { relayLimitsOf } from "./egress-limits.ts";
import { endWithAlert } from "./end-tls.ts";
import { type Beginning, beginningOf, isHttp2Server, mayBecomeTls, nextBytes, PIECES_MAX, readBeginning } from "./first-bytes.ts";
import { inspectTls } from "./inspect.ts";
import { carryToMirror, isMirrored, type Mirrored } from "./mirrored.ts";
import { connectPassage, openPassage, type Passage } from "./passages.ts";
import { createTunnelRequests } from "./tunnel-requests.ts";

interface TunnelOptions {
  client: Duplex;
  /** Bytes of the client that were read already. */
  first: Buffer;
  passage: Passage;
  via: NetworkVia;
  /** Connected, unless the passage must be inspected: then connections are made as requests need them. */
  upstream: Duplex | null;
}

/**
 * A tunnel that may be used: decided, resolved, and connected unless it is inspected; or one that the mirror of package
 * registries answers.
 */
export type ReadyTunnel = { passage: Passage; upstream: Duplex | null } | { mirrored: Mirrored };

/** Throws `unavailable` or `timeout` when the host cannot be reached; nothing of the passage is left then. */
export async function openTunnel(
  context: EgressContext,
  options: { host: TargetHost; port: number; via: NetworkVia; client: Duplex },
): Promise<ReadyTunnel | Denial> {
  const { host, port } = options;
  if (isMirrored(context, { host, port })) return { mirrored: { host, port } };
  const passage = await openPassage(context, options);
  if (isDenial(passage)) return passage;
  if (needsInspection(context, passage)) return { passage, upstream: null };
  try {
    const asked = askedOf(passage.grant, options.via);
    const upstream = await connectPassage(context, { passage, asked, tls: false, measured: false });
    return isDenial(upstream) ? upstream : { passage, upstream };
  } catch (error) {
    passage.end();
    throw error;
  }
}

/**
 * Carries what was asked for by CONNECT, SOCKS or a transparent connection. Resolves when it is over; never rejects.
 */
export async function carryTunnel(
  context: EgressContext,
  options: ReadyTunnel & Pick<TunnelOptions, "client" | "first" | "via">,
): Promise<void> {
  if (!("mirrored" in options)) return await carryPassage(context, options);
  const { client, first, via, mirrored } = options;
  await carryToMirror(context, { ...mirrored, client, first, via }).catch(() => client.destroy());
}

/**
 * The client's first bytes are held back until it is clear what they are. Names in them must be the host that was
 * decided on, else one allowed host could be asked for another that it also serves:
 * - TLS with another SNI is refused. With Encrypted ClientHello this is the outer name, which is all there is to see.
 * - TLS without SNI passes. The connection goes to an address that we resolved for the allowed host, so the server is
 *   one of that host's; without a name it shows its default site, and the client gains nothing that it could not ask
 *   for by name.
 * - A host given as an address was allowed as an address, whatever is served there; SNI is not compared.
 * - HTTP is relayed, and each request's Host compared.
 * - HTTP/2 without TLS is refused: its requests, each with a host of its own, come in frames that are not read here.
 * An open policy is for all hosts, so there is nothing to compare where nothing is inspected.
 */
async function carryPassage(context: EgressContext, options: TunnelOptions): Promise<void> {
  const { passage, client, upstream } = options;
  const inspected = needsInspection(context, passage);
  try {
    if (!inspected && passage.grant.open && upstream !== null) return await carryRaw(context, { ...options, upstream });
    const { beginning, bytes, stopped } = await readBeginning({
      first: options.first,
      bytesMax: context.limits.helloBytesMax,
      // Where the server speaks first (ssh, smtp), the client waits for it: then there is no name to look at.
      wait: (soFar) =>
        nextBytes(client, { timeoutMs: waitMs(context, soFar, inspected), ...(upstream === null ? {} : { other: upstream }) }),
    });
    const known = { ...options, first: bytes };
    if (stopped !== null) await carryUnfinished(context, known, { inspected, stopped });
    else await carryKnown(context, known, { inspected, beginning });
  } catch {
    client.destroy();
  } finally {
    passage.end();
  }
}

/** Whether what goes through must be seen: the rules ask for it, or a secret may have to be injected. */
function needsInspection({ secrets }: EgressContext, passage: Passage): boolean {
  const { host, port } = passage.grant;
  return mustInspect(passage.grant) || secrets.concerns(host.text, port);
}

/**
 * A client that may stay silent may do so for as long as any connection; one whose requests must be seen, or that is in
 * the middle of a ClientHello, may not.
 */
function waitMs({ limits }: EgressContext, soFar: Buffer, inspected: boolean): number {
  if (inspected || mayBecomeTls(soFar)) return limits.firstBytesMs;
  return soFar.length === 0 ? limits.idleMs : limits.silentMs;
}

/** The client stopped, or the server spoke, before it was clear what this is. */
async function carryUnfinished(
  context: EgressContext,
  options: TunnelOptions,
  { inspected, stopped }: { inspected: boolean; stopped: "ended" | "silent" | "otherSpoke" },
): Promise<void> {
  const { client, upstream, first } = options;
  if (!inspected && upstream !== null) {
    if (stopped === "otherSpoke" && isHttp2Server(peek(upstream))) return refuseHttp2(context, options);
    if (stopped !== "silent") return await carryRaw(context, { ...options, upstream });
    if (first.length > 0 && !mayBecomeTls(first)) return await carryWatched(context, { ...options, upstream });
  }
  if (stopped === "silent") refuse(context, options, { reason: "bad_request", why: "the client did not say in time what it wants" });
  client.destroy();
}

/**
 * The client said a word and waits for an answer: it gets what it waits for, but its first line is looked at as it
 * passes. A request that comes in such pieces that it does not look like one is broken off before its Host has passed.
 */
async function carryWatched(context: EgressContext, options: TunnelOptions & { upstream: Duplex }): Promise<void> {
  const { client, upstream, passage, first } = options;
  const { helloBytesMax, idleMs } = context.limits;
  let passed = first;
  passage.count(first.length, 0);
  upstream.write(first);
  for (let pieces = 0; pieces < PIECES_MAX; pieces++) {
    const next = await nextBytes(client, { timeoutMs: idleMs, other: upstream });
    if (next.kind === "silent") break;
    if (next.kind === "otherSpoke" && isHttp2Server(peek(upstream))) return refuseHttp2(context, options);
    if (next.kind !== "bytes") return await carryRaw(context, { ...options, first: Buffer.alloc(0) });
    passed = Buffer.concat([passed, next.bytes]);
    const { kind } = beginningOf(passed, { bytesMax: helloBytesMax });
    if (kind === "http2") return refuseHttp2(context, options);
    if (kind === "http") break;
    if (kind !== "more") return await carryRaw(context, { ...options, first: next.bytes });
    passage.count(next.bytes.length, 0);
    upstream.write(next.bytes);
  }
  refuse(context, options, { reason: "bad_request", why: "what may be a request came in pieces, too slowly" });
  client.destroy();
}

async function carryKnown(
  context: EgressContext,
  options: TunnelOptions,
  known: { inspected: boolean; beginning: Beginning },
): Promise<void> {
  const { inspected, beginning } = known;
  const { client, passage, upstream, via, first } = options;
  switch (beginning.kind) {
    case "hello":
      if (isOtherName(passage, { serverName: beginning.serverName, inspected }))
        return refuseTls(context, options, { reason: "name_mismatch" });
      if (inspected) return await inspectTls(context, options);
      break;
    case "http": {
      const { decide, close } = createTunnelRequests(context, { passage, via, tls: false, upstream });
      await relayHttp(client, { decide, limits: relayLimitsOf(context.limits), onBytes: passage.count }, first);
      return close();
    }
    case "http2":
      return refuseHttp2(context, options);
    case "malformed":
      return refuseTls(context, options, { reason: "bad_request", why: "this is not how a TLS client begins" });
    default:
      if (!inspected) break;
      refuse(context, options, { reason: "bad_request", why: `only HTTP and HTTPS can be spoken to ${passage.grant.host.text} here` });
      return void client.destroy();
  }
  if (upstream !== null) await carryRaw(context, { ...options, upstream });
}

function isOtherName({ grant }: Passage, { serverName, inspected }: { serverName: string | null; inspected: boolean }): boolean {
  if (serverName === null || grant.host.kind === "address" || serverName === grant.host.text) return false;
  return inspected || !grant.open;
}

async function carryRaw(context: EgressContext, options: TunnelOptions & { upstream: Duplex }): Promise<void> {
  const { client, upstream, passage, first } = options;
  await pump(client, upstream, { first, idleMs: context.limits.idleMs, onBytes: passage.count });
}

function refuse(context: EgressContext, { passage, via }: TunnelOptions, refusal: Refusal): void {
  context.deny(askedOf(passage.grant, via), refusal);
}

function refuseHttp2(context: EgressContext, options: TunnelOptions): void {
  const why = "HTTP/2 without TLS could ask for any host; use HTTP/1.1 or TLS, or an open network";
  refuse(context, options, { reason: "bad_request", why });
  options.client.destroy();
}

/** What a stream that was told to wait has to say; it stays there. */
function peek(stream: Duplex): Buffer {
  const bytes = (stream.read() as Buffer | null) ?? Buffer.alloc(0);
  if (bytes.length > 0) stream.unshift(bytes);
  return bytes;
}

function refuseTls(context: EgressContext, options: TunnelOptions, refusal: Refusal): void {
  refuse(context, options, refusal);
  endWithAlert(options.client, refusal);
}
