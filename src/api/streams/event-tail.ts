import type { StreamedEvent } from "../../contract/api/streams.ts";

/** The newest events, shared by all followers. A follower that is further behind reads the log at its own pace. */
const TAIL_EVENTS_MAX = 4_096;
const TAIL_BYTES_MAX = 8 * 1024 * 1024;
/** The most events that a follower gets at once. */
const BATCH_EVENTS_MAX = 256;

/** An event, serialized once for all followers. */
export interface TailEvent {
  readonly streamed: StreamedEvent;
  readonly json: string;
}

export interface TailSource {
  /** Yields the events after a position, then new ones until the signal aborts. */
  events(options: { afterPosition: number; signal: AbortSignal }): AsyncIterable<StreamedEvent>;
  lastPosition(): Promise<number>;
}

/** The newest events, read from the log once for any number of followers. */
export interface EventTail {
  /** Yields everything after a position, each event once and in order, in batches, until the signal aborts. */
  follow(afterPosition: number, signal: AbortSignal): AsyncIterable<readonly TailEvent[]>;
}

export function createEventTail(source: TailSource): EventTail {
  const tail: TailEvent[] = [];
  let keptBytes = 0;
  /** The tail contains everything after this position. Null without followers. */
  let start: number | null = null;
  let followers = 0;
  let stop = new AbortController();
  let failure: unknown = null;
  /** Wakes the followers that have received everything. */
  const waiting = new Set<() => void>();
  const wake = () => {
    const all = [...waiting];
    waiting.clear();
    for (const resolve of all) resolve();
  };
  const keep = (event: TailEvent) => {
    tail.push(event);
    keptBytes += event.json.length;
    let dropped = 0;
    for (; keptBytes > TAIL_BYTES_MAX || tail.length - dropped > TAIL_EVENTS_MAX; dropped += 1) {
      const { streamed, json } = tail[dropped] as TailEvent;
      keptBytes -= json.length;
      start = streamed.position;
    }
    // In one call, since each removal moves all the others.
    if (dropped > 0) tail.splice(0, dropped);
  };
  const read = async (afterPosition: number, signal: AbortSignal) => {
    try {
      for await (const streamed of source.events({ afterPosition, signal })) {
        if (signal.aborted) return;
        keep({ streamed, json: JSON.stringify(streamed) });
        wake();
      }
    } catch (error) {
      if (signal.aborted) return;
      failure = error;
      wake();
    }
  };
  const enter = async () => {
    followers += 1;
    if (followers > 1) return;
    stop = new AbortController();
    const { signal } = stop;
    const last = await source.lastPosition();
    if (signal.aborted) return;
    failure = null;
    start = last;
    void read(last, signal);
    wake();
  };
  const leave = () => {
    followers -= 1;
    if (followers > 0) return;
    stop.abort();
    start = null;
    tail.length = 0;
    keptBytes = 0;
  };
  return {
    async *follow(afterPosition, signal) {
      await enter();
      // Creates a new promise for each wait. A promise that lives as long as the follower would retain everything that
      // ever waited for it.
      let resume = () => {};
      const onAbort = () => resume();
      signal.addEventListener("abort", onAbort, { once: true });
      let position = afterPosition;
      try {
        while (!signal.aborted) {
          if (failure !== null) throw failure;
          if (start === null || position < start) {
            for await (const events of catchUp(source, { position, signal, until: () => start })) {
              yield events;
              position = (events.at(-1) as TailEvent).streamed.position;
            }
            continue;
          }
          const events = after(tail, position);
          if (events.length === 0) {
            await new Promise<void>((resolve) => {
              resume = resolve;
              waiting.add(resolve);
            });
            waiting.delete(resume);
            continue;
          }
          position = (events.at(-1) as TailEvent).streamed.position;
          yield events;
        }
      } finally {
        signal.removeEventListener("abort", onAbort);
        leave();
      }
    },
  };
}

/** Reads from the log until the follower has reached the tail. */
async function* catchUp(
  source: TailSource,
  { position, signal, until }: { position: number; signal: AbortSignal; until: () => number | null },
): AsyncGenerator<readonly TailEvent[]> {
  const stop = new AbortController();
  const abort = () => stop.abort();
  signal.addEventListener("abort", abort, { once: true });
  try {
    for await (const streamed of source.events({ afterPosition: position, signal: stop.signal })) {
      if (signal.aborted) return;
      yield [{ streamed, json: JSON.stringify(streamed) }];
      const start = until();
      if (start !== null && streamed.position >= start) return;
    }
  } finally {
    signal.removeEventListener("abort", abort);
    stop.abort();
  }
}

/** Finds the first newer event by binary search, since positions grow. */
function after(tail: readonly TailEvent[], position: number): readonly TailEvent[] {
  let low = 0;
  let high = tail.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((tail[middle] as TailEvent).streamed.position > position) high = middle;
    else low = middle + 1;
  }
  return tail.slice(low, low + BATCH_EVENTS_MAX);
}
