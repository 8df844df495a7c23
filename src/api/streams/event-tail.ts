import type { StreamedEvent } from "../../contract/api/streams.ts";

/** What of the newest is kept for all who follow; whoever is behind it reads the log at its own pace. */
const TAIL_EVENTS_MAX = 4_096;
const TAIL_BYTES_MAX = 8 * 1024 * 1024;
/** How much a follower gets at once. */
const BATCH_EVENTS_MAX = 256;

/** An event, written once for all who get it. */
export interface TailEvent {
  readonly streamed: StreamedEvent;
  readonly json: string;
}

export interface TailSource {
  /** Those after a position, then those to come, until the signal. */
  events(options: { afterPosition: number; signal: AbortSignal }): AsyncIterable<StreamedEvent>;
  lastPosition(): Promise<number>;
}

/** The newest events, read from the log once for however many follow them. */
export interface EventTail {
  /** Everything after a position, each once and in order, in pieces; until the signal. */
  follow(afterPosition: number, signal: AbortSignal): AsyncIterable<readonly TailEvent[]>;
}

export function createEventTail(source: TailSource): EventTail {
  const kept: TailEvent[] = [];
  let keptBytes = 0;
  /** Everything after it is kept. Null while nobody follows. */
  let start: number | null = null;
  let followers = 0;
  let stop = new AbortController();
  let failure: unknown = null;
  /** Of followers that have everything. */
  const waiting = new Set<() => void>();
  const wake = () => {
    const all = [...waiting];
    waiting.clear();
    for (const resolve of all) resolve();
  };
  const keep = (event: TailEvent) => {
    kept.push(event);
    keptBytes += event.json.length;
    let dropped = 0;
    for (; keptBytes > TAIL_BYTES_MAX || kept.length - dropped > TAIL_EVENTS_MAX; dropped += 1) {
      const { streamed, json } = kept[dropped] as TailEvent;
      keptBytes -= json.length;
      start = streamed.position;
    }
    // Not one by one: each would move all the others.
    if (dropped > 0) kept.splice(0, dropped);
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
    kept.length = 0;
    keptBytes = 0;
  };
  return {
    async *follow(afterPosition, signal) {
      await enter();
      // Not a promise that lives as long as the follower: what waits for one stays with it.
      let goOn = () => {};
      const onAbort = () => goOn();
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
          const events = after(kept, position);
          if (events.length === 0) {
            await new Promise<void>((resolve) => {
              goOn = resolve;
              waiting.add(resolve);
            });
            waiting.delete(goOn);
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

/** From the log, until the follower is where the tail begins. */
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

/** By halves: positions grow. */
function after(kept: readonly TailEvent[], position: number): readonly TailEvent[] {
  let low = 0;
  let high = kept.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((kept[middle] as TailEvent).streamed.position > position) high = middle;
    else low = middle + 1;
  }
  return kept.slice(low, low + BATCH_EVENTS_MAX);
}
