const WINDOW_MS = 250;
/** Keeps a queue from looking hopeless before anything is known. */
const PER_MS_MIN = 0.02;

/** The recent rate of started requests per millisecond. */
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
