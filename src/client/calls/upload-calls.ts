import type { BodyInput, QueryInput } from "../../contract/api/routes.ts";
import { type Connection, call, type Signal } from "../request.ts";

export function uploadCalls(to: Connection) {
  return {
    /** A tar archive of a folder: all of it is kept, or nothing. */
    put: (archive: BodyInput<"uploads.put">, query: QueryInput<"uploads.put"> = {}, given: Signal = {}) =>
      call(to, "uploads.put", { body: archive, query, ...given }),
    list: async (query: QueryInput<"uploads.list"> = {}, given: Signal = {}) =>
      (await call(to, "uploads.list", { query, ...given })).uploads,
    get: (upload: string, given: Signal = {}) => call(to, "uploads.get", { params: { upload }, ...given }),
    remove: (upload: string, given: Signal = {}) => call(to, "uploads.remove", { params: { upload }, ...given }),
  };
}
