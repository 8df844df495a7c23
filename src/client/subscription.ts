import type { EventFilter, EventsServerMessage, StreamedEvent } from "../contract/api/streams.ts";
import { CaissonError } from "../contract/error.ts";
import { ATTEMPTS_MAX, pauseBefore } from "./attempts.ts";
import type { Connection } from "./request.ts";
import { openStream, type StreamSocket } from "./stream-socket.ts";
import { createTakenQueue } from "./taken-queue.ts";
import { SILENCE_MS, type SilenceWatch, watchSilence } from "./watch-silence.ts";

const WINDOW_EVENTS = 1000;
const TELL_EVENTS = WINDOW_EVENTS / 4;

export interface SubscribeOptions {
  /** Events after this position; `end`: only those to come. Absent: from the first. */
  afterPosition?: number | "end";
  filter?: EventFilter;
  signal?: AbortSignal;
  /** Told when the connection breaks off (false) and when it is there again (true); events wait meanwhile. */
  onConnection?(isThere: boolean): void;
  /** Another silence after which the station is asked for a sign of life, for tests. */
  silenceMs?: number;
}

/**
 * Events of runs, sandboxes and driven things, each once, in order, whatever becomes of the connection. Ends with the
 * signal.
 */
export interface Subscription extends AsyncIterable<StreamedEvent> {
  /** Everything up to here came, or did not pass the filter: what to subscribe after to go on from here. */
  position(): number;
  /** Events after the position with which it resolves pass this filter, and those up to it passed the one before. */
  changeFilter(filter: EventFilter): Promise<number>;
  close(): void;
}

/** Throws what opening a stream throws. Later, the iteration does, when the station is not back after some attempts. */
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
  // Those that brought nothing decide how long the next one waits; those that reached nobody, whether there is one.
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
    onMessage(given) {
      const message = given as EventsServerMessage;
      silence?.heard();
      // What a connection says that was given up is said again by the next one.
      if (silence?.hasFallen()) return;
      if (message.type === "subscribed") subscribed.resolve();
      state.onMessage(message);
    },
  });
  silence = state.connected(socket);
  const closed = Promise.race([socket.closed, silence.fallen]).then(({ error }) => {
    throw error ?? new CaissonError("unavailable", "the station closed the stream");
  });
  closed.catch(() => {});
  await Promise.race([subscribed.promise, closed]);
  return socket;
}

type SubscriptionState = ReturnType<typeof createSubscriptionState>;

/** What outlives a connection. */
function createSubscriptionState({ afterPosition, filter: asked = {}, signal, onConnection, silenceMs = SILENCE_MS }: SubscribeOptions) {
  const ends = new AbortController();
  if (signal?.aborted) ends.abort();
  else signal?.addEventListener("abort", () => ends.abort(), { once: true, signal: ends.signal });
  let filter = asked;
  let position: number | null = null;
  let socket: StreamSocket | null = null;
  let silence: SilenceWatch | null = null;
  let taken = 0;
  let told = 0;
  const changes: { resolve(position: number): void; reject(error: unknown): void }[] = [];
  const events = createTakenQueue<StreamedEvent>(() => {
    taken += 1;
    if (taken - told < TELL_EVENTS) return;
    told = taken;
    socket?.send({ type: "taken", events: taken });
  });
  /** Those that wait when the connection breaks are answered by the next one's beginning: it has the new filter. */
  const changed = (at: number, all: boolean) => {
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
    /** Resolves, as a closed socket does, when the other side gives no sign of life. */
    fallenSilent: () => silence?.fallen ?? new Promise<never>(() => {}),
    disconnected() {
      if (!ends.signal.aborted) onConnection?.(false);
      socket = null;
      taken = 0;
      told = 0;
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
      if (message.type !== "position") changed(message.position, message.type === "subscribed");
    },
    finish(error?: Error) {
      ends.abort();
      for (const { reject } of changes.splice(0)) reject(error ?? new CaissonError("gone", "the subscription has ended"));
      events.end(error);
    },
  };
}
