import type { Duplex } from "node:stream";
import type { RelayLimits } from "./relay-options.ts";

/**
 * What a client's connection is at: `draining` reads the rest of a body nobody wants; `lingering` waits for the client
 * to close; `handedOver` is somebody else's.
 */
export type Phase = "head" | "deciding" | "exchange" | "draining" | "lingering" | "handedOver" | "over";

const LOOKS_PER_LIMIT = 4;
const TICK_MS_MIN = 5;

/** How often a connection's times are looked at: one timer for all of them is cheaper than one for each byte. */
export function tickMsOf(limits: RelayLimits): number {
  const { headMs, idleMs, keepAliveMs, connectMs, halfOpenMs, lingerMs } = limits;
  return Math.max(TICK_MS_MIN, Math.min(headMs, idleMs, keepAliveMs, connectMs, halfOpenMs, lingerMs) / LOOKS_PER_LIMIT);
}

/** What a client's connection is at, and since when. */
export class PhaseClock {
  phase: Phase = "head";
  /** When a byte last passed. */
  touchedMs = 0;
  /** When the head that is being read began; null while there is nothing of it. */
  headSinceMs: number | null = null;
  #phaseSinceMs = 0;

  enter(phase: Phase): void {
    this.phase = phase;
    this.#phaseSinceMs = this.touchedMs = performance.now();
  }

  touch(): void {
    this.touchedMs = performance.now();
  }

  /** What the connection has come to by waiting. The silence of an upstream is the exchange's to judge. */
  overdue(nowMs: number, client: { endedMs: number | null; duplex: Duplex }, limits: RelayLimits): "timeout" | "finish" | "reset" | null {
    // The client's time to close begins when it has been given everything.
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
