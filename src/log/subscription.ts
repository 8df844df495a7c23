import type { StoredEvent } from "./log.ts";

/** How many events a subscription takes from the store at a time; what a slow consumer has not asked for is not in memory. */
const PAGE = 500;

export interface Wakeups {
  /** Calls back after each append that may concern the stream; returns how to stop. */
  listen(stream: string, wake: () => void): () => void;
}

/**
 * Everything from a sequence on, then live. Each round reads the store from where the consumer is, so that nothing can be missed between
 * reading and listening, and waits for a wake-up only when the store had nothing new.
 */
export async function* subscription(options: {
  stream: string;
  fromSeq: number;
  signal: AbortSignal | undefined;
  wakeups: Wakeups;
  read: (fromSeq: number, limit: number) => Promise<StoredEvent[]>;
}): AsyncGenerator<StoredEvent> {
  let next = options.fromSeq;
  let woken = false;
  let resolveWait: (() => void) | undefined;
  const wake = () => {
    woken = true;
    resolveWait?.();
  };
  const stop = options.wakeups.listen(options.stream, wake);
  options.signal?.addEventListener("abort", wake);
  try {
    while (!options.signal?.aborted) {
      woken = false;
      const events = await options.read(next, PAGE);
      for (const event of events) {
        if (options.signal?.aborted) return;
        yield event;
        next = event.seq + 1;
      }
      if (events.length > 0 || woken || options.signal?.aborted) continue;
      await new Promise<void>((resolve) => {
        resolveWait = resolve;
      });
      resolveWait = undefined;
    }
  } finally {
    stop();
    options.signal?.removeEventListener("abort", wake);
  }
}
