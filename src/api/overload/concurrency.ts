/** If the event loop is later than this, fewer requests run at once; otherwise, more. */
const LATE_MS = 40;
const ADJUST_MS = 100;
const LOOK_MS_MAX = 100;

/** How many requests run at once, adapted to the delay of the event loop. */
export interface Concurrency {
  hasRoom(): boolean;
  /** Counts one more request. Call the returned function when it was answered. */
  begin(): () => void;
  /** Calls `onRoom` when a running request has become one that only waits. */
  lookAgain(): void;
}

/**
 * Counts a request until it is answered, but for at most `freshMs`: one that follows events or waits for a command
 * costs nothing meanwhile.
 */
export function createConcurrency(options: {
  loopDelayMs: () => number;
  now: () => number;
  freshMs: number;
  atOnce: { min: number; max: number };
  onRoom: () => void;
  later: (work: () => void, delayMs: number) => void;
}): Concurrency {
  const { now, freshMs, atOnce, onRoom } = options;
  /** Ordered from oldest to newest. */
  const fresh = new Map<symbol, number>();
  let { max } = atOnce;
  let adjustedMs = now();
  let isLooking = false;
  const adjust = (atMs: number) => {
    if (atMs - adjustedMs < ADJUST_MS) return;
    adjustedMs = atMs;
    max = options.loopDelayMs() > LATE_MS ? Math.max(atOnce.min, Math.floor(max * 0.75)) : Math.min(atOnce.max, max + 1);
  };
  const forgetStale = (atMs: number) => {
    for (const [id, sinceMs] of fresh) {
      if (atMs - sinceMs < freshMs) return;
      fresh.delete(id);
    }
  };
  return {
    hasRoom() {
      const atMs = now();
      adjust(atMs);
      if (fresh.size >= max) forgetStale(atMs);
      return fresh.size < max;
    },
    begin() {
      const id = Symbol();
      fresh.set(id, now());
      return () => {
        if (fresh.delete(id)) onRoom();
      };
    },
    lookAgain() {
      if (isLooking) return;
      isLooking = true;
      options.later(
        () => {
          isLooking = false;
          onRoom();
        },
        Math.min(freshMs / 2, LOOK_MS_MAX),
      );
    },
  };
}
