import type { BodyInput, EventData, Json, QueryInput } from "../../contract/api/routes.ts";
import { eventData } from "../event-stream.ts";
import { type Connection, call, type Signal } from "../request.ts";

export function workflowCalls(to: Connection) {
  return {
    validate: (definition: BodyInput<"workflows.validate">["definition"], given: Signal = {}) =>
      call(to, "workflows.validate", { body: { definition }, ...given }),
    start: (body: BodyInput<"workflows.start">, given: Signal = {}) => call(to, "workflows.start", { body, ...given }),
    list: (query: QueryInput<"workflows.list"> = {}, given: Signal = {}) => call(to, "workflows.list", { query, ...given }),
    get: (workflow: string, given: Signal = {}) => call(to, "workflows.get", { params: { workflow }, ...given }),
    /**
     * The events from a number on, each once; with `follow`, also those to come, until it has ended, whatever becomes
     * of the connection.
     */
    events(workflow: string, options: { fromSeq?: number; follow?: boolean } & Signal = {}): AsyncIterable<EventData<"workflows.events">> {
      const { fromSeq, follow = false, ...given } = options;
      if (!follow) return pages(to, workflow, { fromSeq: fromSeq ?? 1, ...given });
      const query = fromSeq === undefined ? {} : { fromSeq };
      return eventData(to, "workflows.events", { input: { params: { workflow }, query, ...given }, resume: true });
    },
    /** Resolves when it has ended or, with `orPerson`, waits for a person, however long that takes. */
    async wait(workflow: string, { orPerson = false, ...given }: { orPerson?: boolean } & Signal = {}): Promise<Json<"workflows.wait">> {
      for (;;) {
        const view = await call(to, "workflows.wait", { params: { workflow }, query: { orPerson }, ...given });
        if (view.finish !== null || (orPerson && (view.waits?.person ?? null) !== null)) return view;
      }
    },
    cancel: (workflow: string, body: BodyInput<"workflows.cancel"> = {}, given: Signal = {}) =>
      call(to, "workflows.cancel", { params: { workflow }, body, ...given }),
    pause: (workflow: string, body: BodyInput<"workflows.pause"> = {}, given: Signal = {}) =>
      call(to, "workflows.pause", { params: { workflow }, body, ...given }),
    resume: (workflow: string, given: Signal = {}) => call(to, "workflows.resume", { params: { workflow }, ...given }),
    signal: (workflow: string, body: BodyInput<"workflows.signal">, given: Signal = {}) =>
      call(to, "workflows.signal", { params: { workflow }, body, ...given }),
    approve: (workflow: string, body: BodyInput<"workflows.approve">, given: Signal = {}) =>
      call(to, "workflows.approve", { params: { workflow }, body, ...given }),
    retry: (workflow: string, given: Signal = {}) => call(to, "workflows.retry", { params: { workflow }, ...given }),
    remove: (workflow: string, given: Signal = {}) => call(to, "workflows.remove", { params: { workflow }, ...given }),
  };
}

async function* pages(to: Connection, workflow: string, { fromSeq, ...given }: { fromSeq: number } & Signal) {
  for (let next: number | null = fromSeq; next !== null; ) {
    const query = { fromSeq: next, limit: 1000 };
    const page: Json<"workflows.events"> = await call(to, "workflows.events", { params: { workflow }, query, ...given });
    yield* page.events;
    next = page.next;
  }
}
