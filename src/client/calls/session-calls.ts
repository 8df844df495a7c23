import type { BodyInput, EventData, QueryInput } from "../../contract/api/routes.ts";
import { eventData } from "../event-stream.ts";
import { type Connection, call, type Signal, send, streamOf } from "../request.ts";

export function sessionCalls(to: Connection) {
  return {
    list: ({ signal, ...query }: QueryInput<"sessions.list"> & Signal = {}) =>
      call(to, "sessions.list", { query, ...(signal && { signal }) }),
    get: (session: string, given: Signal = {}) => call(to, "sessions.get", { params: { session }, ...given }),
    diff: (session: string, query: QueryInput<"sessions.diff"> = {}, given: Signal = {}) =>
      call(to, "sessions.diff", { params: { session }, query, ...given }),
    /** As git writes it. */
    async patch(session: string, query: QueryInput<"sessions.patch"> = {}, given: Signal = {}): Promise<ReadableStream<Uint8Array>> {
      return streamOf(await send(to, "sessions.patch", { input: { params: { session }, query, ...given }, accept: "*/*" }));
    },
    apply: (session: string, body: BodyInput<"sessions.apply"> = {}, given: Signal = {}) =>
      call(to, "sessions.apply", { params: { session }, body, ...given }),
    applied: (session: string, query: QueryInput<"sessions.applied"> = {}, given: Signal = {}) =>
      call(to, "sessions.applied", { params: { session }, query, ...given }),
    branch: (session: string, body: BodyInput<"sessions.branch"> = {}, given: Signal = {}) =>
      call(to, "sessions.branch", { params: { session }, body, ...given }),
    /** The same piece by piece, with what is known of each file and what was left out. */
    pieces: (session: string, query: QueryInput<"sessions.patch"> = {}, given: Signal = {}) =>
      eventData<EventData<"sessions.patch">>(to, "sessions.patch", { input: { params: { session }, query, ...given }, resume: false }),
    /** As an archive, for whoever has the folder they belong to. */
    async changes(session: string, query: QueryInput<"sessions.changes"> = {}, given: Signal = {}): Promise<ReadableStream<Uint8Array>> {
      return streamOf(await send(to, "sessions.changes", { input: { params: { session }, query, ...given }, accept: "*/*" }));
    },
    note: (session: string, body: BodyInput<"sessions.note">, given: Signal = {}) =>
      call(to, "sessions.note", { params: { session }, body, ...given }),
    unapplied: (session: string, given: Signal = {}) => call(to, "sessions.unapplied", { params: { session }, ...given }),
    undo: (run: string, body: BodyInput<"sessions.undo"> = {}, given: Signal = {}) =>
      call(to, "sessions.undo", { params: { run }, body, ...given }),
    points: async (session: string, given: Signal = {}) => (await call(to, "sessions.points", { params: { session }, ...given })).points,
    files: (session: string, query: QueryInput<"sessions.files"> = {}, given: Signal = {}) =>
      call(to, "sessions.files", { params: { session }, query, ...given }),
    async readFile(session: string, query: QueryInput<"sessions.readFile">, given: Signal = {}): Promise<ReadableStream<Uint8Array>> {
      return streamOf(await send(to, "sessions.readFile", { input: { params: { session }, query, ...given }, accept: "*/*" }));
    },
    fork: (session: string, body: BodyInput<"sessions.fork"> = {}, given: Signal = {}) =>
      call(to, "sessions.fork", { params: { session }, body, ...given }),
    cleanup: (body: BodyInput<"sessions.cleanup">, given: Signal = {}) => call(to, "sessions.cleanup", { body, ...given }),
    unlock: (session: string, body: BodyInput<"sessions.unlock"> = {}, given: Signal = {}) =>
      call(to, "sessions.unlock", { params: { session }, body, ...given }),
    discard: (session: string, query: QueryInput<"sessions.discard"> = {}, given: Signal = {}) =>
      call(to, "sessions.discard", { params: { session }, query, ...given }),
  };
}
