import { setTimeout as delay } from "node:timers/promises";

/** The passing of time as the loop sees it. A replay replaces it, because its pauses and limits were recorded. */
export interface LoopClock {
  /** Waits. Rejects when the signal fires. */
  pause(ms: number, signal: AbortSignal): Promise<void>;
  /** Calls `fire` after this time. Returns a function that cancels it. */
  after(ms: number, fire: () => void): () => void;
}

const TIMER_MS_MAX = 2 ** 31 - 1;

export const realClock: LoopClock = {
  pause: (ms, signal) => delay(ms, undefined, { signal }),
  after(ms, fire) {
    const timer = setTimeout(fire, Math.min(ms, TIMER_MS_MAX));
    return () => clearTimeout(timer);
  },
};
