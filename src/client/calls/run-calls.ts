import type { BodyInput, EventData, QueryInput } from "../../verbs/routes.ts";
import { derivedCalls } from "../derived-calls.ts";
import { eventData } from "../event-stream.ts";
import { type Connection, call, type Signal } from "../request.ts";

export function runCalls(to: Connection) {
  return {
    ...derivedCalls(to, "runs"),
    start: (body: BodyInput<"runs.start">, options: Signal = {}) => call(to, "runs.start", { body, ...options }),
    list: (query: QueryInput<"runs.list"> = {}, options: Signal = {}) => call(to, "runs.list", { query, ...options }),
    /** Returns one page of events, for a client that fetches the next page before it has used this one. */
    eventPage: (run: string, query: QueryInput<"runs.events">, options: Signal = {}) =>
      call(to, "runs.events", { params: { run }, query, ...options }),
    /** Yields the events of all runs, from the first or from after a position, then new ones, until the signal. */
    allEvents: ({ signal, ...query }: QueryInput<"runs.allEvents"> & Signal = {}) =>
      eventData<EventData<"runs.allEvents">>(to, "runs.allEvents", { input: { query, ...(signal && { signal }) }, resume: true }),
    send: (run: string, body: BodyInput<"runs.send">, options: Signal = {}) => call(to, "runs.send", { params: { run }, body, ...options }),
    resume: (run: string, body: BodyInput<"runs.resume"> = {}, options: Signal = {}) =>
      call(to, "runs.resume", { params: { run }, body, ...options }),
    /** Gives a finished run another turn. */
    continue: (run: string, body: BodyInput<"runs.continue">, options: Signal = {}) =>
      call(to, "runs.continue", { params: { run }, body, ...options }),
    /** Creates runs that continue this one as it was after a step. */
    fork: async (run: string, body: BodyInput<"runs.fork"> = {}, options: Signal = {}) =>
      (await call(to, "runs.fork", { params: { run }, body, ...options })).runs,
  };
}
