const WINDOW_MS = 250;
/** So that a queue is not taken for hopeless before anything is known. */
const PER_MS_MIN = 0.02;

/** How many requests are started in a millisecond, over the last moments. */
export interface StartRate {
  count(atMs: number): void;
  perMs(atMs: number): number;
}

export function createStartRate(startMs: number): StartRate {
  let windowMs = startMs;
  let started = 0;
  let last = 1;
  const roll = (atMs: number) => {
    const passedMs = atMs - windowMs;
    if (passedMs < WINDOW_MS) return;
    last = Math.max(PER_MS_MIN, 0.5 * last + (0.5 * started) / passedMs);
    windowMs = atMs;
    started = 0;
  };
  return {
    count(atMs) {
      roll(atMs);
      started += 1;
    },
    perMs(atMs) {
      roll(atMs);
      return last;
    },
  };
}
