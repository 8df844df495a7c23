import type { BodyInput, QueryInput } from "../../verbs/routes.ts";
import { derivedCalls } from "../derived-calls.ts";
import { type Connection, call, type Signal } from "../request.ts";

export function uploadCalls(to: Connection) {
  return {
    ...derivedCalls(to, "uploads"),
    /** Stores a tar archive of a folder, completely or not at all. */
    put: (archive: BodyInput<"uploads.put">, query: QueryInput<"uploads.put"> = {}, options: Signal = {}) =>
      call(to, "uploads.put", { body: archive, query, ...options }),
    list: async (query: QueryInput<"uploads.list"> = {}, options: Signal = {}) =>
      (await call(to, "uploads.list", { query, ...options })).uploads,
  };
}
