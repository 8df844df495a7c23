import type { RelayLimits } from "../http/relay-options.ts";

/** The timeouts and table sizes of one sandbox's egress proxy. */
export interface EgressLimits {
  /** Simultaneous connections from inside. Further ones get `too_many`. */
  connectionsMax: number;
  /** How long a client may take to send its first request, SOCKS greeting or ClientHello. */
  firstBytesMs: number;
  /** How long a transparent connection without a known name may stay silent before its address decides. */
  silentMs: number;
  /** The maximum size of a ClientHello, across all its records. */
  helloBytesMax: number;
  resolveMs: number;
  /** Pending name lookups, including abandoned ones. */
  resolvesMax: number;
  /** How many addresses of one name we try, in the order of the answer. */
  addressesMax: number;
  connectMs: number;
  handshakeMs: number;
  /** How long a connection may stay without a byte in either direction. */
  idleMs: number;
  /** How long a client has to read our last message and close. */
  lingerMs: number;
  /** Denials for the same host, port and reason within this time become one event. */
  denialWindowMs: number;
  /** Different denials within a window. All further ones share one event. */
  denialsMax: number;
  /** Names with an invented address in transparent mode. */
  namesMax: number;
  redirectsMax: number;
  fetchMs: number;
}

export const egressLimits: Readonly<EgressLimits> = {
  connectionsMax: 1024,
  firstBytesMs: 10_000,
  silentMs: 300,
  helloBytesMax: 65_536,
  resolveMs: 5000,
  resolvesMax: 256,
  addressesMax: 4,
  connectMs: 10_000,
  handshakeMs: 10_000,
  idleMs: 300_000,
  lingerMs: 5000,
  denialWindowMs: 5000,
  denialsMax: 200,
  namesMax: 8192,
  redirectsMax: 5,
  fetchMs: 60_000,
};

/** Returns these limits as the relay of one connection takes them. */
export function relayLimitsOf(limits: EgressLimits): Partial<RelayLimits> {
  const { firstBytesMs, idleMs, lingerMs } = limits;
  // Each stage of connecting has its own limit and message. The relay's limit is only the last resort.
  const connectMs = limits.resolveMs + limits.connectMs + limits.handshakeMs;
  return { headMs: firstBytesMs, idleMs, keepAliveMs: idleMs, tunnelIdleMs: idleMs, lingerMs, connectMs };
}
