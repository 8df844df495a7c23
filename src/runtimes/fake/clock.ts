/** What a fake sandbox knows of time. A test that passes its own decides when a sleeping program wakes up. */
export interface Clock {
  now(): number;
  /** Calls back once after the time; the result takes it back. */
  after(ms: number, callback: () => void): () => void;
}

/** Timers longer than this overflow; nobody waits for them in a test. */
const TIMER_MS_MAX = 2 ** 31 - 1;

export const systemClock: Clock = {
  now: Date.now,
  after(ms, callback) {
    const timer = setTimeout(callback, Math.min(ms, TIMER_MS_MAX)).unref();
    return () => clearTimeout(timer);
  },
};
