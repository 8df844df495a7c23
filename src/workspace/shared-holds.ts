import { setTimeout as delay } from "node:timers/promises";

interface SharedHold {
  count: number;
  taken: Promise<AsyncDisposable>;
  openUntilMs: number;
  over: PromiseWithResolvers<void>;
}

/**
 * Creates holds that callers share: the first one takes the hold, and the last one releases it. If a hold is older than
 * `openMs`, a new caller waits for its release and then for `pauseMs`, so that others get their turn.
 */
export function createSharedHolds(
  take: (id: string) => Promise<AsyncDisposable>,
  { openMs, pauseMs }: { openMs: number; pauseMs: number },
): { hold(id: string): Promise<AsyncDisposable> } {
  const shared = new Map<string, SharedHold>();
  const end = (id: string, hold: SharedHold) => {
    if (shared.get(id) === hold) shared.delete(id);
    hold.over.resolve();
  };
  const begin = (id: string): SharedHold => {
    const hold: SharedHold = { count: 0, taken: take(id), openUntilMs: Number.POSITIVE_INFINITY, over: Promise.withResolvers() };
    shared.set(id, hold);
    hold.taken.then(
      () => {
        hold.openUntilMs = performance.now() + openMs;
      },
      () => end(id, hold),
    );
    return hold;
  };
  const leave = async (id: string, hold: SharedHold) => {
    hold.count -= 1;
    if (hold.count > 0) return;
    // No caller joins a hold that is being released.
    hold.openUntilMs = Number.NEGATIVE_INFINITY;
    try {
      await (await hold.taken)[Symbol.asyncDispose]();
    } finally {
      end(id, hold);
    }
  };
  return {
    async hold(id) {
      for (let held = shared.get(id); held && performance.now() >= held.openUntilMs; held = shared.get(id)) {
        await held.over.promise;
        await delay(pauseMs);
      }
      const mine = shared.get(id) ?? begin(id);
      mine.count += 1;
      await mine.taken;
      return { [Symbol.asyncDispose]: () => leave(id, mine) };
    },
  };
}
