import { setTimeout as delay } from "node:timers/promises";

/**
 * How many events a subscription takes from the store at a time, and how many bytes of them; what a slow consumer has
 * not asked for is not in memory.
 */
const PAGE = 500;
const PAGE_BYTES = 1024 ** 2;

/** What may still be read: events, and bytes of their data. One event is read whatever its size. */
export interface ReadBudget {
  limit: number;
  bytes: number;
}

/**
 * Everything from a number on, then live. Each round reads the store from where the consumer is, so that nothing can be
 * missed between reading and listening, and waits for a wake-up only when the store had nothing new.
 */
export async function* subscription<Event>(options: {
  from: number;
  signal: AbortSignal | undefined;
  /** Calls back after each append that may concern the subscriber; returns how to stop. */
  listen: (wake: () => void) => () => void;
  /** Some events from this number on, and the number to continue from: the same one when the store has nothing more. */
  read: (from: number, budget: ReadBudget) => Promise<{ events: readonly Event[]; next: number }>;
  /** Between two looks at the store, for those who need not know at once: what came meanwhile is read together. */
  restMs?: number | undefined;
  /** The number up to which the subscriber has the events already: those are not read again. */
  known?: (() => number) | undefined;
}): AsyncGenerator<Event> {
  const { signal } = options;
  let { from } = options;
  let woken = false;
  let resolveWait: (() => void) | undefined;
  const wake = () => {
    woken = true;
    resolveWait?.();
  };
  const stop = options.listen(wake);
  signal?.addEventListener("abort", wake);
  try {
    while (!signal?.aborted) {
      woken = false;
      from = Math.max(from, (options.known?.() ?? 0) + 1);
      const { events, next } = await options.read(from, { limit: PAGE, bytes: PAGE_BYTES });
      for (const event of events) {
        if (signal?.aborted) return;
        yield event;
      }
      const isAtEnd = next === from;
      from = next;
      if (!isAtEnd || woken || signal?.aborted) continue;
      await new Promise<void>((resolve) => {
        resolveWait = resolve;
      });
      resolveWait = undefined;
      if (options.restMs !== undefined) await delay(options.restMs, undefined, signal ? { signal } : {}).catch(() => undefined);
    }
  } finally {
    stop();
    signal?.removeEventListener("abort", wake);
  }
}

/** A page of one stream, for `subscription`. */
export function pageOf<Event extends { seq: number }>(
  events: readonly Event[],
  fromSeq: number,
): { events: readonly Event[]; next: number } {
  return { events, next: (events.at(-1)?.seq ?? fromSeq - 1) + 1 };
}
