import type { BodyInput, EventData, Json, QueryInput } from "../../contract/api/routes.ts";
import { eventData } from "../event-stream.ts";
import { type Connection, call, type Signal } from "../request.ts";

export function shipCalls(to: Connection) {
  return {
    start: (body: BodyInput<"ships.start">, given: Signal = {}) => call(to, "ships.start", { body, ...given }),
    list: (query: QueryInput<"ships.list"> = {}, given: Signal = {}) => call(to, "ships.list", { query, ...given }),
    get: (ship: string, given: Signal = {}) => call(to, "ships.get", { params: { ship }, ...given }),
    /** The events from a number on, each once; with `follow`, also those to come, until it is over. */
    events(ship: string, options: { fromSeq?: number; follow?: boolean } & Signal = {}): AsyncIterable<EventData<"ships.events">> {
      const { fromSeq, follow = false, ...given } = options;
      if (!follow) return pages(to, ship, { fromSeq: fromSeq ?? 1, ...given });
      const query = fromSeq === undefined ? {} : { fromSeq };
      return eventData(to, "ships.events", { input: { params: { ship }, query, ...given }, resume: true });
    },
    /** Resolves when it is over or, with `orPerson`, waits for a person, however long that takes. */
    async wait(ship: string, { orPerson = false, ...given }: { orPerson?: boolean } & Signal = {}): Promise<Json<"ships.wait">> {
      for (;;) {
        const view = await call(to, "ships.wait", { params: { ship }, query: { orPerson }, ...given });
        if (view.status === "merged" || view.status === "cancelled" || (orPerson && view.asks !== null)) return view;
      }
    },
    watch: (ship: string, query: QueryInput<"ships.watch">, given: Signal = {}) =>
      call(to, "ships.watch", { params: { ship }, query, ...given }),
    merge: (ship: string, given: Signal = {}) => call(to, "ships.merge", { params: { ship }, ...given }),
    resume: (ship: string, given: Signal = {}) => call(to, "ships.resume", { params: { ship }, ...given }),
    pause: (ship: string, body: BodyInput<"ships.pause"> = {}, given: Signal = {}) =>
      call(to, "ships.pause", { params: { ship }, body, ...given }),
    cancel: (ship: string, given: Signal = {}) => call(to, "ships.cancel", { params: { ship }, ...given }),
    remove: (ship: string, given: Signal = {}) => call(to, "ships.remove", { params: { ship }, ...given }),
  };
}

async function* pages(to: Connection, ship: string, { fromSeq, ...given }: { fromSeq: number } & Signal) {
  for (let next: number | null = fromSeq; next !== null; ) {
    const query = { fromSeq: next, limit: 1000 };
    const page: Json<"ships.events"> = await call(to, "ships.events", { params: { ship }, query, ...given });
    yield* page.events;
    next = page.next;
  }
}
