/** A fake sandbox's source of time. A test that passes its own decides when a sleeping program wakes up. */
export interface Clock {
  now(): number;
  /** Calls back once after the given time. Returns a function that cancels the call. */
  after(ms: number, callback: () => void): () => void;
}

/** Timers longer than this overflow; no test waits for them. */
const TIMER_MS_MAX = 2 ** 31 - 1;

export const systemClock: Clock = {
  now: Date.now,
  after(ms, callback) {
    const timer = setTimeout(callback, Math.min(ms, TIMER_MS_MAX)).unref();
    return () => clearTimeout(timer);
  },
};
