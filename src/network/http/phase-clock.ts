import type { Duplex } from "node:stream";
import type { RelayLimits } from "./relay-options.ts";

/**
 * The phase of a client's connection. `draining` reads the rest of an unwanted body, `lingering` waits for the client
 * to close, `handedOver` belongs to another reader.
 */
export type Phase = "head" | "deciding" | "exchange" | "draining" | "lingering" | "handedOver" | "over";

const LOOKS_PER_LIMIT = 4;
const TICK_MS_MIN = 5;

/**
 * Returns the interval at which we check a connection's timeouts. One timer for all of them is cheaper than a new one
 * after each byte.
 */
export function tickMsOf(limits: RelayLimits): number {
  const { headMs, idleMs, keepAliveMs, connectMs, halfOpenMs, lingerMs } = limits;
  return Math.max(TICK_MS_MIN, Math.min(headMs, idleMs, keepAliveMs, connectMs, halfOpenMs, lingerMs) / LOOKS_PER_LIMIT);
}

/** The phase of a client's connection, and since when. */
export class PhaseClock {
  phase: Phase = "head";
  /** When the last byte passed. */
  touchedMs = 0;
  /** When the head that is being read started, or null before its first byte. */
  headSinceMs: number | null = null;
  #phaseSinceMs = 0;

  enter(phase: Phase): void {
    this.phase = phase;
    this.#phaseSinceMs = this.touchedMs = performance.now();
  }

  touch(): void {
    this.touchedMs = performance.now();
  }

  /**
   * Returns what to do if the connection has waited too long, or null. The exchange itself judges a silent upstream.
   */
  overdue(nowMs: number, client: { endedMs: number | null; duplex: Duplex }, limits: RelayLimits): "timeout" | "finish" | "reset" | null {
    // The client's time to close starts after everything was written to it.
    if (this.phase === "lingering" && !client.duplex.writableFinished) this.#phaseSinceMs = nowMs;
    const quietMs = nowMs - this.touchedMs;
    const inPhaseMs = nowMs - this.#phaseSinceMs;
    switch (this.phase) {
      case "head":
        if (this.headSinceMs === null) return quietMs > limits.keepAliveMs ? "finish" : null;
        return nowMs - this.headSinceMs > limits.headMs ? "timeout" : null;
      case "draining":
        return inPhaseMs > limits.lingerMs ? "finish" : null;
      case "lingering":
        return inPhaseMs > limits.lingerMs || quietMs > limits.idleMs + limits.lingerMs ? "reset" : null;
      default:
        if (client.endedMs !== null && nowMs - client.endedMs > limits.halfOpenMs) return "reset";
        return this.phase !== "exchange" && quietMs > limits.idleMs ? "reset" : null;
    }
  }
}
