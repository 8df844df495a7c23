import type { RelayLimits } from "../http/relay-options.ts";

/** Every wait and every table of the egress proxy of one sandbox. */
export interface EgressLimits {
  /** Connections from inside at once; the next is told `too_many`. */
  connectionsMax: number;
  /** How long a client may take to say what it wants: its first request, its SOCKS greeting, its ClientHello. */
  firstBytesMs: number;
  /** How long a transparent connection without a known name may stay silent before it is decided by its address. */
  silentMs: number;
  /** A ClientHello in all its records. */
  helloBytesMax: number;
  resolveMs: number;
  /** Names whose lookup has not answered yet, those given up included. */
  resolvesMax: number;
  /** Addresses of one name that are tried, in the order of the answer. */
  addressesMax: number;
  connectMs: number;
  handshakeMs: number;
  /** Without a byte in either direction. */
  idleMs: number;
  /** How long a client has to read our last words and close. */
  lingerMs: number;
  /** Denials for the same host, port and reason within this are one event. */
  denialWindowMs: number;
  /** Different denials within a window; what is past it is one event for all. */
  denialsMax: number;
  /** Names that have an invented address in transparent mode. */
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

/** The same limits, as the relay of one of its connections has them. */
export function relayLimitsOf(limits: EgressLimits): Partial<RelayLimits> {
  const { firstBytesMs, idleMs, lingerMs } = limits;
  // The parts of a connection have their own limits, with words of their own; the relay's is only the last resort.
  const connectMs = limits.resolveMs + limits.connectMs + limits.handshakeMs;
  return { headMs: firstBytesMs, idleMs, keepAliveMs: idleMs, tunnelIdleMs: idleMs, lingerMs, connectMs };
}
