import type { EventData, QueryInput } from "../../verbs/routes.ts";
import { derivedCalls } from "../derived-calls.ts";
import { eventData } from "../event-stream.ts";
import { type Connection, type Signal, send, streamOf } from "../request.ts";

export function sessionCalls(to: Connection) {
  return {
    ...derivedCalls(to, "sessions"),
    /** Returns a patch in git's format. */
    async patch(session: string, query: QueryInput<"sessions.patch"> = {}, options: Signal = {}): Promise<ReadableStream<Uint8Array>> {
      return streamOf(await send(to, "sessions.patch", { input: { params: { session }, query, ...options }, accept: "*/*" }));
    },
    /** Yields the patch in pieces, with details of each file and of what was omitted. */
    pieces: (session: string, query: QueryInput<"sessions.patch"> = {}, options: Signal = {}) =>
      eventData<EventData<"sessions.patch">>(to, "sessions.patch", { input: { params: { session }, query, ...options }, resume: false }),
  };
}
