import type { Duplex } from "node:stream";
import type { NetworkVia } from "../../contract/network/network-event.ts";
import type { TargetHost } from "../address/target-host.ts";
import { pump } from "../http/pump.ts";
import { relayHttp } from "../http/relay.ts";
import { carryToMirror, isMirrored, type Mirrored } from "./carry-to-mirror.ts";
import { mustInspect } from "./decide-egress.ts";
import { attemptOf, type Denial, isDenial, type Refusal } from "./denial.ts";
import type { EgressContext } from "./egress-context.ts";
import { relayLimitsOf } from "./egress-limits.ts";
import { endWithAlert } from "./end-tls.ts";
import { type Beginning, beginningOf, isHttp2Server, mayBecomeTls, nextBytes, PIECES_MAX, readBeginning } from "./first-bytes.ts";
import { inspectTls } from "./inspect.ts";
import { connectPassage, openPassage, type Passage } from "./passages.ts";
import { createTunnelRequests } from "./tunnel-requests.ts";

interface TunnelOptions {
  client: Duplex;
  /** Bytes that were already read from the client. */
  first: Buffer;
  passage: Passage;
  via: NetworkVia;
  /** Connected, unless the passage must be inspected: then requests open connections as needed. */
  upstream: Duplex | null;
}

/**
 * A tunnel that is ready to use: allowed, resolved, and connected unless it is inspected; or one that the package
 * mirror answers.
 */
export type ReadyTunnel = { passage: Passage; upstream: Duplex | null } | { mirrored: Mirrored };

/** Throws `unavailable` or `timeout` if the host cannot be reached, after ending the passage. */
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
    const request = attemptOf(passage.grant, options.via);
    const upstream = await connectPassage(context, { passage, attempt: request, tls: false, measured: false });
    return isDenial(upstream) ? upstream : { passage, upstream };
  } catch (error) {
    passage.end();
    throw error;
  }
}

/** Carries a tunnel for CONNECT, SOCKS or a transparent connection. Resolves when it has ended; never rejects. */
export async function carryTunnel(
  context: EgressContext,
  options: ReadyTunnel & Pick<TunnelOptions, "client" | "first" | "via">,
): Promise<void> {
  if (!("mirrored" in options)) return await carryPassage(context, options);
  const { client, first, via, mirrored } = options;
  await carryToMirror(context, { ...mirrored, client, first, via }).catch(() => client.destroy());
}

/**
 * Holds back the client's first bytes until their protocol is clear. A name in them must be the host that was allowed,
 * or a client could reach other hosts that the same server serves:
 * - TLS with another SNI is refused. With Encrypted ClientHello we compare the outer name, because we see no other.
 * - TLS without SNI passes. We resolved the server's address for the allowed host, so the server belongs to that host.
 *   Without a name it serves its default site, and the client gains nothing that it could not request by name.
 * - If the host is an address, the policy allowed that address with everything it serves, so we do not compare SNI.
 * - HTTP is relayed, and the Host of each request is compared.
 * - HTTP/2 without TLS is refused: its requests, each with its own host, are in frames that we do not parse.
 * An open policy allows all hosts, so without inspection there is nothing to compare.
 */
async function carryPassage(context: EgressContext, options: TunnelOptions): Promise<void> {
  const { passage, client, upstream } = options;
  const inspected = needsInspection(context, passage);
  try {
    if (!inspected && passage.grant.open && upstream !== null) return await carryRaw(context, { ...options, upstream });
    const { beginning, bytes, stopped } = await readBeginning({
      first: options.first,
      bytesMax: context.limits.helloBytesMax,
      // If the server speaks first (ssh, smtp), the client waits for it, and there is no name to compare.
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

/** Checks whether we must see the traffic, because the rules require it or a secret may have to be injected. */
function needsInspection({ secrets }: EgressContext, passage: Passage): boolean {
  const { host, port } = passage.grant;
  return mustInspect(passage.grant) || secrets.concerns(host.text, port);
}

/**
 * Returns how long to wait for the client. It may stay silent as long as any connection, unless its requests must be
 * inspected or it is in the middle of a ClientHello.
 */
function waitMs({ limits }: EgressContext, soFar: Buffer, inspected: boolean): number {
  if (inspected || mayBecomeTls(soFar)) return limits.firstBytesMs;
  return soFar.length === 0 ? limits.idleMs : limits.silentMs;
}

/** Handles a client that stopped, or a server that spoke, before the protocol was clear. */
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
  if (stopped === "silent")
    refuse(context, options, { reason: "bad_request", why: "the client did not complete its first message in time" });
  client.destroy();
}

/**
 * The client sent a few bytes and waits for an answer. We pass the answer on, but check the client's first line as it
 * passes. If a request arrives in pieces too small to recognize, we cut it off before its Host has passed.
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
  refuse(context, options, { reason: "bad_request", why: "the client sent its first line in too many pieces or too slowly" });
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
      return refuseTls(context, options, { reason: "bad_request", why: "the TLS ClientHello is malformed" });
    default:
      if (!inspected) break;
      refuse(context, options, {
        reason: "bad_request",
        why: `requests to ${passage.grant.host.text} are inspected, which works only for HTTP and HTTPS`,
      });
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
  context.deny(attemptOf(passage.grant, via), refusal);
}

function refuseHttp2(context: EgressContext, options: TunnelOptions): void {
  const why = "HTTP/2 without TLS could request any host; use HTTP/1.1, TLS or an open network";
  refuse(context, options, { reason: "bad_request", why });
  options.client.destroy();
}

/** Returns the bytes that a paused stream has received, and leaves them there. */
function peek(stream: Duplex): Buffer {
  const bytes = (stream.read() as Buffer | null) ?? Buffer.alloc(0);
  if (bytes.length > 0) stream.unshift(bytes);
  return bytes;
}

function refuseTls(context: EgressContext, options: TunnelOptions, refusal: Refusal): void {
  refuse(context, options, refusal);
  endWithAlert(options.client, refusal);
}
