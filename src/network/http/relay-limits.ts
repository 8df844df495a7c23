export interface RelayLimits {
  /** From the first byte of a head to its end; past it a request is answered with 408. */
  headMs: number;
  /** Without a byte in either direction while a request is under way. */
  idleMs: number;
  /** Between two requests of a client, and before its first. */
  keepAliveMs: number;
  /** For `connect`; past it the request is answered with 504. */
  connectMs: number;
  /** How long an answer is waited for after the client has ended its side: most have gone away, few have only ended sending. */
  halfOpenMs: number;
  /** How long the client has to close after we did, and to send the rest of a body nobody wants. */
  lingerMs: number;
  /** How much of a body nobody wants is read before the connection is closed; and once more while it closes, so that the answer is not lost to a reset. */
  drainBytesMax: number;
  /** Without a byte in either direction after an upgrade. */
  tunnelIdleMs: number;
  /** A request that must not be sent twice takes an idle connection only if it was used this recently: the other side may be about to close it. */
  freshMs: number;
}

export const relayLimits: RelayLimits = {
  headMs: 30_000,
  idleMs: 600_000,
  keepAliveMs: 120_000,
  connectMs: 30_000,
  halfOpenMs: 5_000,
  lingerMs: 30_000,
  drainBytesMax: 1_048_576,
  tunnelIdleMs: 7_200_000,
  freshMs: 2_000,
};

const LOOKS_PER_LIMIT = 4;
const TICK_MS_MIN = 5;

/** How often a connection's times are looked at: one timer for all of them is cheaper than one for each byte. */
export function tickMsOf(limits: RelayLimits): number {
  const { headMs, idleMs, keepAliveMs, connectMs, halfOpenMs, lingerMs } = limits;
  return Math.max(TICK_MS_MIN, Math.min(headMs, idleMs, keepAliveMs, connectMs, halfOpenMs, lingerMs) / LOOKS_PER_LIMIT);
}
