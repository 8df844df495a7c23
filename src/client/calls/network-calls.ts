import type { BodyInput, EventData, Json, QueryInput } from "../../contract/api/routes.ts";
import { eventData } from "../event-stream.ts";
import { type Connection, call, type Signal } from "../request.ts";

const PAGE = 1000;

export function networkCalls(to: Connection) {
  return {
    show: (sandbox: string, given: Signal = {}) => call(to, "networks.show", { params: { sandbox }, ...given }),
    change: (sandbox: string, body: BodyInput<"networks.change">, given: Signal = {}) =>
      call(to, "networks.change", { params: { sandbox }, body, ...given }),
    revoke: (sandbox: string, { secret }: { secret: string }, given: Signal = {}) =>
      call(to, "networks.revoke", { params: { sandbox, secret }, ...given }),
    /** What happened; with `follow`, also what is to come, until the signal, whatever becomes of the connection. */
    log(
      sandbox: string,
      { fromSeq = 1, follow = false, ...given }: { fromSeq?: number; follow?: boolean } & Signal = {},
    ): AsyncIterable<EventData<"networks.log">> {
      if (!follow) return pages(to, sandbox, { fromSeq, ...given });
      return eventData(to, "networks.log", { input: { params: { sandbox }, query: { fromSeq }, ...given }, resume: true });
    },
    ports: async (sandbox: string, { signal, ...query }: QueryInput<"ports.list"> & Signal = {}) =>
      (await call(to, "ports.list", { params: { sandbox }, query, ...(signal && { signal }) })).ports,
    watchPorts: (sandbox: string, given: Signal = {}) =>
      eventData<EventData<"ports.watch">>(to, "ports.watch", { input: { params: { sandbox }, ...given }, resume: false }),
    /** Shows a port, until `closePreview`, the sandbox's end, or the station's. */
    keepPreview: (sandbox: string, body: BodyInput<"previews.open">, given: Signal = {}) =>
      call(to, "previews.open", { params: { sandbox }, body, ...given }),
    previews: async (given: Signal = {}) => (await call(to, "previews.list", given)).previews,
    closePreview: (preview: string, given: Signal = {}) => call(to, "previews.close", { params: { preview }, ...given }),
  };
}

async function* pages(to: Connection, sandbox: string, { fromSeq, ...given }: { fromSeq: number } & Signal) {
  for (let next: number | null = fromSeq; next !== null; ) {
    const query = { fromSeq: next, limit: PAGE };
    const page: Json<"networks.log"> = await call(to, "networks.log", { params: { sandbox }, query, ...given });
    yield* page.events;
    next = page.next;
  }
}
