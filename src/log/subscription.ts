import { setTimeout as delay } from "node:timers/promises";
import { ignore } from "../lib/failures.ts";

/**
 * How many events a subscription reads at a time, and their maximum bytes. Everything beyond that stays in the store
 * until the consumer needs it.
 */
const PAGE = 500;
const PAGE_BYTES = 1024 ** 2;

/**
 * How many events, and how many bytes of their data, may still be read. A read returns at least one event, even an
 * oversized one.
 */
export interface ReadBudget {
  limit: number;
  bytes: number;
}

/**
 * Delivers everything from a number on, then live. Each round reads the store from the consumer's position, so nothing
 * is missed between reading and listening, and waits for a wake-up only if the store has nothing new.
 */
export async function* subscription<Event>(options: {
  from: number;
  signal: AbortSignal | undefined;
  /** Calls `wake` after each append that may concern the subscriber; returns a function that stops it. */
  listen: (wake: () => void) => () => void;
  /** Reads events from this number on. `next` is the number to continue from, or the same number at the end. */
  read: (from: number, budget: ReadBudget) => Promise<{ events: readonly Event[]; next: number }>;
  /** A pause between reads, for subscribers that can wait: events that arrive during it are read together. */
  restMs?: number | undefined;
  /** The number up to which the subscriber already has the events; those are not read again. */
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
      if (options.restMs !== undefined)
        await ignore(delay(options.restMs, undefined, signal ? { signal } : {}), "the loop checks the signal");
    }
  } finally {
    stop();
    signal?.removeEventListener("abort", wake);
  }
}

/** Returns a page of one stream, for `subscription`. */
export function pageOf<Event extends { seq: number }>(
  events: readonly Event[],
  fromSeq: number,
): { events: readonly Event[]; next: number } {
  return { events, next: (events.at(-1)?.seq ?? fromSeq - 1) + 1 };
}
