import type { BodyInput, EventData, Json, QueryInput } from "../../contract/api/routes.ts";
import { eventData } from "../event-stream.ts";
import { type Connection, call, type Signal } from "../request.ts";

export function specCalls(to: Connection) {
  const get = (spec: string, given: Signal = {}) => call(to, "specs.get", { params: { spec }, ...given });
  return {
    create: (body: BodyInput<"specs.create">, given: Signal = {}) => call(to, "specs.create", { body, ...given }),
    list: (query: QueryInput<"specs.list"> = {}, given: Signal = {}) => call(to, "specs.list", { query, ...given }),
    get,
    execute: (spec: string, body: BodyInput<"specs.execute"> = {}, given: Signal = {}) =>
      call(to, "specs.execute", { params: { spec }, body, ...given }),
    decide: (spec: string, body: BodyInput<"specs.decide">, given: Signal = {}) =>
      call(to, "specs.decide", { params: { spec }, body, ...given }),
    edit: (spec: string, body: BodyInput<"specs.edit">, given: Signal = {}) => call(to, "specs.edit", { params: { spec }, body, ...given }),
    cancel: (spec: string, given: Signal = {}) => call(to, "specs.cancel", { params: { spec }, ...given }),
    /** Once it has ended or waits for a person, however long that takes. */
    async wait(spec: string, given: Signal = {}) {
      for (;;) {
        const view = await call(to, "specs.wait", { params: { spec }, query: {}, ...given });
        if (view.status !== "running" && view.status !== "retrying") return view;
      }
    },
    /** The events from a number on, each once; with `follow`, also those to come, until it is over. */
    events(spec: string, options: { fromSeq?: number; follow?: boolean } & Signal = {}): AsyncIterable<EventData<"specs.events">> {
      const { fromSeq, follow = false, ...given } = options;
      if (!follow) return pages(to, spec, { fromSeq: fromSeq ?? 1, ...given });
      const query = fromSeq === undefined ? {} : { fromSeq };
      return eventData(to, "specs.events", { input: { params: { spec }, query, ...given }, resume: true });
    },
    diff: (spec: string, query: QueryInput<"specs.diff"> = {}, given: Signal = {}) =>
      call(to, "specs.diff", { params: { spec }, query, ...given }),
    export: (spec: string, query: QueryInput<"specs.export"> = {}, given: Signal = {}) =>
      call(to, "specs.export", { params: { spec }, query, ...given }),
    remove: (spec: string, given: Signal = {}) => call(to, "specs.remove", { params: { spec }, ...given }),
  };
}

async function* pages(to: Connection, spec: string, { fromSeq, ...given }: { fromSeq: number } & Signal) {
  for (let next: number | null = fromSeq; next !== null; ) {
    const query = { fromSeq: next, limit: 1000 };
    const page: Json<"specs.events"> = await call(to, "specs.events", { params: { spec }, query, ...given });
    yield* page.events;
    next = page.next;
  }
}
