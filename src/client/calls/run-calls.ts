import type { BodyInput, EventData, Json, QueryInput } from "../../contract/api/routes.ts";
import { eventData } from "../event-stream.ts";
import { type Connection, call, type Signal } from "../request.ts";

export function runCalls(to: Connection) {
  return {
    start: (body: BodyInput<"runs.start">, given: Signal = {}) => call(to, "runs.start", { body, ...given }),
    get: (run: string, given: Signal = {}) => call(to, "runs.get", { params: { run }, ...given }),
    list: (query: QueryInput<"runs.list"> = {}, given: Signal = {}) => call(to, "runs.list", { query, ...given }),
    /**
     * The events from a number on, each once; with `follow`, also those to come, until the run has ended, whatever
     * becomes of the connection.
     */
    events(run: string, options: { fromSeq?: number; follow?: boolean } & Signal = {}): AsyncIterable<EventData<"runs.events">> {
      const { fromSeq, follow = false, ...given } = options;
      if (!follow) return pages(to, run, { fromSeq: fromSeq ?? 1, ...given });
      const query = fromSeq === undefined ? {} : { fromSeq };
      return eventData(to, "runs.events", { input: { params: { run }, query, ...given }, resume: true });
    },
    /** One page of them, for whoever asks for the next before it has looked at this one. */
    eventPage: (run: string, query: QueryInput<"runs.events">, given: Signal = {}) =>
      call(to, "runs.events", { params: { run }, query, ...given }),
    /** The events of all runs, from the first or from after a position, then those to come, until the signal. */
    allEvents: ({ signal, ...query }: QueryInput<"runs.allEvents"> & Signal = {}) =>
      eventData<EventData<"runs.allEvents">>(to, "runs.allEvents", { input: { query, ...(signal && { signal }) }, resume: true }),
    lastPosition: async (given: Signal = {}) => (await call(to, "runs.lastPosition", given)).position,
    send: (run: string, body: BodyInput<"runs.send">, given: Signal = {}) => call(to, "runs.send", { params: { run }, body, ...given }),
    answer: (run: string, body: BodyInput<"runs.answer">, given: Signal = {}) =>
      call(to, "runs.answer", { params: { run }, body, ...given }),
    pause: (run: string, body: BodyInput<"runs.pause"> = {}, given: Signal = {}) =>
      call(to, "runs.pause", { params: { run }, body, ...given }),
    resume: (run: string, body: BodyInput<"runs.resume"> = {}, given: Signal = {}) =>
      call(to, "runs.resume", { params: { run }, body, ...given }),
    /** The next turn of a run that has ended. */
    continue: (run: string, body: BodyInput<"runs.continue">, given: Signal = {}) =>
      call(to, "runs.continue", { params: { run }, body, ...given }),
    /** A null takes a label away. */
    label: (run: string, body: BodyInput<"runs.label">, given: Signal = {}) => call(to, "runs.label", { params: { run }, body, ...given }),
    prioritize: (run: string, body: BodyInput<"runs.prioritize">, given: Signal = {}) =>
      call(to, "runs.prioritize", { params: { run }, body, ...given }),
    /** Lets the station go on with a run whose process died. */
    adopt: (run: string, given: Signal = {}) => call(to, "runs.adopt", { params: { run }, ...given }),
    queue: (given: Signal = {}) => call(to, "runs.queue", given),
    stop: (run: string, given: Signal = {}) => call(to, "runs.stop", { params: { run }, ...given }),
    /** Resolves when the run has ended, however long that takes. */
    async wait(run: string, given: Signal = {}): Promise<Json<"runs.wait">> {
      for (;;) {
        const view = await call(to, "runs.wait", { params: { run }, query: {}, ...given });
        if (view.finish !== null) return view;
      }
    },
    remove: (run: string, given: Signal = {}) => call(to, "runs.remove", { params: { run }, ...given }),
    check: async (given: Signal = {}) => (await call(to, "runs.check", given)).damage,
  };
}

async function* pages(to: Connection, run: string, { fromSeq, ...given }: { fromSeq: number } & Signal) {
  for (let next: number | null = fromSeq; next !== null; ) {
    const page: Json<"runs.events"> = await call(to, "runs.events", { params: { run }, query: { fromSeq: next, limit: 1000 }, ...given });
    yield* page.events;
    next = page.next;
  }
}
