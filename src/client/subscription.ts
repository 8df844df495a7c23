import type { EventFilter, EventsServerMessage, StreamedEvent } from "../contract/api/streams.ts";
import { CaissonError } from "../contract/error/error.ts";
import { ignore } from "../lib/failures.ts";
import { ATTEMPTS_MAX, pauseBefore } from "./attempts.ts";
import { createItemQueue } from "./item-queue.ts";
import type { Connection } from "./request.ts";
import { openStream, type StreamSocket } from "./stream-socket.ts";
import { SILENCE_MS, type SilenceWatch, watchSilence } from "./watch-silence.ts";

const WINDOW_EVENTS = 1000;
const TELL_EVENTS = WINDOW_EVENTS / 4;

export interface SubscribeOptions {
  /** Only events after this position; `end` for new ones only. Absent: from the first. */
  afterPosition?: number | "end";
  filter?: EventFilter;
  signal?: AbortSignal;
  /** Called with false when the connection breaks and with true when it is restored. Events are held until then. */
  onConnection?(isThere: boolean): void;
  /** Overrides the silence before a health check, for tests. */
  silenceMs?: number;
}

/**
 * Events of runs, sandboxes and durable jobs, each once, in order, even across broken connections. Ends with the
 * signal.
 */
export interface Subscription extends AsyncIterable<StreamedEvent> {
  /** Returns the position up to which all matching events have arrived. Subscribe after it to continue. */
  position(): number;
  /** Resolves to the position after which the new filter applies; the previous filter applies up to it. */
  changeFilter(filter: EventFilter): Promise<number>;
  close(): void;
}

/**
 * Throws what opening a stream throws. Later the iteration throws, if the station does not return after some attempts.
 */
export async function subscribe(to: Connection, options: SubscribeOptions = {}): Promise<Subscription> {
  const state = createSubscriptionState(options);
  const first = await connectOnce(to, state);
  void keepConnected(to, state, first);
  return {
    [Symbol.asyncIterator]: () => state.events[Symbol.asyncIterator](),
    position: () => state.position(),
    changeFilter: (filter) => state.changeFilter(filter),
    close: () => state.ends.abort(),
  };
}

async function keepConnected(to: Connection, state: SubscriptionState, first: StreamSocket): Promise<void> {
  let socket: StreamSocket | null = first;
  // `attempt` counts connections without events and determines the pause; `unreached` counts failed ones and bounds
  // them.
  let attempt = 0;
  let unreached = 0;
  try {
    for (;;) {
      if (socket !== null) {
        const before = state.position();
        const { error } = await Promise.race([socket.closed, state.fallenSilent()]);
        state.disconnected();
        if (state.ends.signal.aborted) return state.finish();
        if (error !== null && error.code !== "unavailable") throw error;
        if (state.position() > before) attempt = 0;
      }
      attempt += 1;
      await pauseBefore(attempt, state.ends.signal);
      if (state.ends.signal.aborted) return state.finish();
      socket = await connectOnce(to, state).catch((error: unknown) => {
        const mayReturn = error instanceof CaissonError && (error.code === "unavailable" || error.code === "busy");
        unreached += 1;
        if (!mayReturn || unreached >= ATTEMPTS_MAX) throw error;
        return null;
      });
      if (socket === null) continue;
      unreached = 0;
      state.onConnection?.(true);
    }
  } catch (error) {
    state.finish(state.ends.signal.aborted ? undefined : (error as Error));
  }
}

async function connectOnce(to: Connection, state: SubscriptionState): Promise<StreamSocket> {
  const subscribed = Promise.withResolvers<void>();
  let silence: SilenceWatch | null = null;
  const socket = await openStream(to, "events.stream", {
    signal: state.ends.signal,
    onMessage(raw) {
      const message = raw as EventsServerMessage;
      silence?.reset();
      // Ignores messages of a connection that we gave up: the next one repeats them.
      if (silence?.hasFallen()) return;
      if (message.type === "subscribed") subscribed.resolve();
      state.onMessage(message);
    },
  });
  silence = state.connected(socket);
  const closed = Promise.race([socket.closed, silence.fallen]).then(({ error }) => {
    throw error ?? new CaissonError("unavailable", "the station closed the stream");
  });
  void ignore(closed, "awaited in the race below");
  await Promise.race([subscribed.promise, closed]);
  return socket;
}

type SubscriptionState = ReturnType<typeof createSubscriptionState>;

/** The state that outlives a connection. */
function createSubscriptionState({
  afterPosition,
  filter: firstFilter = {},
  signal,
  onConnection,
  silenceMs = SILENCE_MS,
}: SubscribeOptions) {
  const ends = new AbortController();
  if (signal?.aborted) ends.abort();
  else signal?.addEventListener("abort", () => ends.abort(), { once: true, signal: ends.signal });
  let filter = firstFilter;
  let position: number | null = null;
  let socket: StreamSocket | null = null;
  let silence: SilenceWatch | null = null;
  let takenCount = 0;
  let reportedCount = 0;
  const changes: { resolve(position: number): void; reject(error: unknown): void }[] = [];
  const events = createItemQueue<StreamedEvent>(() => {
    takenCount += 1;
    if (takenCount - reportedCount < TELL_EVENTS) return;
    reportedCount = takenCount;
    socket?.send({ type: "taken", events: takenCount });
  });
  /**
   * If the connection breaks, pending changes are confirmed when the next connection begins, because it uses the new
   * filter.
   */
  const resolveChanges = (at: number, all: boolean) => {
    for (const { resolve } of changes.splice(0, all ? changes.length : 1)) resolve(at);
  };
  return {
    ends,
    events,
    position: () => position ?? 0,
    onConnection,
    connected(opened: StreamSocket) {
      socket = opened;
      silence = watchSilence(opened, silenceMs);
      const after = position ?? afterPosition;
      opened.send({ type: "subscribe", filter, windowEvents: WINDOW_EVENTS, ...(after !== undefined && { afterPosition: after }) });
      return silence;
    },
    /** Resolves, as a closed socket does, when the other side does not respond. */
    fallenSilent: () => silence?.fallen ?? new Promise<never>(() => {}),
    disconnected() {
      if (!ends.signal.aborted) onConnection?.(false);
      socket = null;
      takenCount = 0;
      reportedCount = 0;
    },
    changeFilter(changedTo: EventFilter): Promise<number> {
      filter = changedTo;
      if (ends.signal.aborted) return Promise.reject(new CaissonError("gone", "the subscription has ended"));
      const { promise, resolve, reject } = Promise.withResolvers<number>();
      changes.push({ resolve, reject });
      socket?.send({ type: "filter", filter });
      return promise;
    },
    onMessage(message: EventsServerMessage) {
      if (message.type === "problem" || message.type === "pong") return;
      if (message.type === "events") {
        for (const event of message.events) {
          position = event.position;
          events.push(event);
        }
        return;
      }
      position = message.position;
      if (message.type !== "position") resolveChanges(message.position, message.type === "subscribed");
    },
    finish(error?: Error) {
      ends.abort();
      for (const { reject } of changes.splice(0)) reject(error ?? new CaissonError("gone", "the subscription has ended"));
      events.end(error);
    },
  };
}
