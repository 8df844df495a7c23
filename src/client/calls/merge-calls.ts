import type { BodyInput, EventData, Json, QueryInput } from "../../contract/api/routes.ts";
import { eventData } from "../event-stream.ts";
import { type Connection, call, type Signal } from "../request.ts";

export function mergeCalls(to: Connection) {
  return {
    start: (body: BodyInput<"merges.start">, given: Signal = {}) => call(to, "merges.start", { body, ...given }),
    list: (query: QueryInput<"merges.list"> = {}, given: Signal = {}) => call(to, "merges.list", { query, ...given }),
    get: (merge: string, given: Signal = {}) => call(to, "merges.get", { params: { merge }, ...given }),
    /** The events from a number on, each once; with `follow`, also those to come, until it has ended. */
    events(merge: string, options: { fromSeq?: number; follow?: boolean } & Signal = {}): AsyncIterable<EventData<"merges.events">> {
      const { fromSeq, follow = false, ...given } = options;
      if (!follow) return pages(to, merge, { fromSeq: fromSeq ?? 1, ...given });
      const query = fromSeq === undefined ? {} : { fromSeq };
      return eventData(to, "merges.events", { input: { params: { merge }, query, ...given }, resume: true });
    },
    /** Resolves when it has ended or, with `orPerson`, waits for a person, however long that takes. */
    async wait(merge: string, { orPerson = false, ...given }: { orPerson?: boolean } & Signal = {}): Promise<Json<"merges.wait">> {
      for (;;) {
        const view = await call(to, "merges.wait", { params: { merge }, query: { orPerson }, ...given });
        if (view.finish !== null || (orPerson && (view.waits?.person ?? null) !== null)) return view;
      }
    },
    resolve: (merge: string, body: BodyInput<"merges.resolve"> = {}, given: Signal = {}) =>
      call(to, "merges.resolve", { params: { merge }, body, ...given }),
    cancel: (merge: string, body: BodyInput<"merges.cancel"> = {}, given: Signal = {}) =>
      call(to, "merges.cancel", { params: { merge }, body, ...given }),
    pause: (merge: string, body: BodyInput<"merges.pause"> = {}, given: Signal = {}) =>
      call(to, "merges.pause", { params: { merge }, body, ...given }),
    resume: (merge: string, given: Signal = {}) => call(to, "merges.resume", { params: { merge }, ...given }),
    remove: (merge: string, given: Signal = {}) => call(to, "merges.remove", { params: { merge }, ...given }),
  };
}

async function* pages(to: Connection, merge: string, { fromSeq, ...given }: { fromSeq: number } & Signal) {
  for (let next: number | null = fromSeq; next !== null; ) {
    const page: Json<"merges.events"> = await call(to, "merges.events", {
      params: { merge },
      query: { fromSeq: next, limit: 1000 },
      ...given,
    });
    yield* page.events;
    next = page.next;
  }
}
