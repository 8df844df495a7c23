import { EventsClientMessage } from "../../contract/api/streams.ts";
import { CaissonError } from "../../contract/error/error.ts";
import type { Station } from "../../verbs/station.ts";
import { createCredit } from "./credit.ts";
import { createFilter, streamedOf } from "./event-filter.ts";
import { createEventTail, type EventTail, type TailEvent } from "./event-tail.ts";
import { parseMessage, type ServerSocket } from "./server-socket.ts";
import type { ServeStream } from "./stream.ts";

/** The number of filtered events after which the client receives its position. */
const SKIPPED_MAX = 1_000;

/** Streams events to followers. Followers with the same view share one reading of the log. */
export function createEventStreams(): ServeStream {
  const tails = new Map<string, { tail: EventTail; followers: number }>();
  return async ({ socket, station, view, signal }) => {
    const first = await socket.first(EventsClientMessage);
    if (first.type !== "subscribe") throw new CaissonError("invalid", "the first message must be a subscription");
    const shared = tails.get(view) ?? { tail: createEventTail(sourceOf(station)), followers: 0 };
    tails.set(view, shared);
    shared.followers += 1;
    try {
      const { afterPosition = 0, filter = {}, windowEvents } = first;
      const position = afterPosition === "end" ? await station.runs.lastPosition() : afterPosition;
      const reader = createEventReader(socket, { position, passes: createFilter(filter), credit: createCredit(windowEvents, signal) });
      void socket.send({ type: "subscribed", position });
      for await (const events of shared.tail.follow(position, signal)) await reader.take(events);
    } finally {
      shared.followers -= 1;
      if (shared.followers === 0) tails.delete(view);
    }
  };
}

function sourceOf({ runs }: Pick<Station, "runs">) {
  return {
    async *events(options: { afterPosition: number; signal: AbortSignal }) {
      for await (const fed of runs.allEvents(options)) yield streamedOf(fed);
    },
    lastPosition: () => runs.lastPosition(),
  };
}

/** Tracks one client's position and filter. */
function createEventReader(
  socket: ServerSocket,
  options: { position: number; passes: ReturnType<typeof createFilter>; credit: ReturnType<typeof createCredit> },
) {
  const { credit } = options;
  let { position, passes } = options;
  let skipped = 0;
  socket.listen({
    onMessage(raw) {
      const message = parseMessage(EventsClientMessage, raw);
      if (message.type === "subscribe") throw new CaissonError("invalid", "this socket has already subscribed");
      if (message.type === "taken") return credit.acknowledge(message.events);
      if (message.type === "ping") return void socket.send({ type: "pong" });
      passes = createFilter(message.filter);
      void socket.send({ type: "filtered", position });
    },
  });
  return {
    /** Resolves when the client may receive more. */
    async take(events: readonly TailEvent[]): Promise<void> {
      for (let at = 0; at < events.length; ) {
        await credit.room();
        const passed: string[] = [];
        // Without awaiting, so that a filter change comes before or after the whole batch.
        for (; at < events.length && passed.length < credit.remaining(); at += 1) {
          const { streamed, json } = events[at] as TailEvent;
          ({ position } = streamed);
          if (passes(streamed)) passed.push(json);
          else skipped += 1;
        }
        if (passed.length > 0) {
          skipped = 0;
          credit.spend(passed.length);
          await socket.send(`{"type":"events","events":[${passed.join(",")}]}`);
        } else if (skipped >= SKIPPED_MAX) {
          skipped = 0;
          await socket.send({ type: "position", position });
        }
      }
    },
  };
}
