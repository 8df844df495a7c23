import type { EventData, QueryInput } from "../../verbs/routes.ts";
import { derivedCalls } from "../derived-calls.ts";
import { eventData } from "../event-stream.ts";
import { type Connection, call, type Signal } from "../request.ts";

export function networkCalls(to: Connection) {
  return {
    ...derivedCalls(to, "networks"),
    revoke: (sandbox: string, { secret }: { secret: string }, options: Signal = {}) =>
      call(to, "networks.revoke", { params: { sandbox, secret }, ...options }),
    ports: async (sandbox: string, { signal, ...query }: QueryInput<"ports.list"> & Signal = {}) =>
      (await call(to, "ports.list", { params: { sandbox }, query, ...(signal && { signal }) })).ports,
    watchPorts: (sandbox: string, options: Signal = {}) =>
      eventData<EventData<"ports.watch">>(to, "ports.watch", { input: { params: { sandbox }, ...options }, resume: false }),
  };
}
