import type { BodyInput, QueryInput } from "../../contract/api/routes.ts";
import { type Connection, call, type Signal } from "../request.ts";

export function shipCalls(to: Connection) {
  return {
    start: (body: BodyInput<"ships.start">, given: Signal = {}) => call(to, "ships.start", { body, ...given }),
    list: (query: QueryInput<"ships.list"> = {}, given: Signal = {}) => call(to, "ships.list", { query, ...given }),
    get: (ship: string, given: Signal = {}) => call(to, "ships.get", { params: { ship }, ...given }),
    watch: (ship: string, query: QueryInput<"ships.watch">, given: Signal = {}) =>
      call(to, "ships.watch", { params: { ship }, query, ...given }),
    merge: (ship: string, given: Signal = {}) => call(to, "ships.merge", { params: { ship }, ...given }),
    resume: (ship: string, given: Signal = {}) => call(to, "ships.resume", { params: { ship }, ...given }),
    cancel: (ship: string, given: Signal = {}) => call(to, "ships.cancel", { params: { ship }, ...given }),
  };
}
