import type { BodyInput, EventData, QueryInput } from "../../contract/api/routes.ts";
import { openEvents } from "../event-stream.ts";
import { type Connection, call, type Signal, send, streamOf } from "../request.ts";

export function fileCalls(to: Connection) {
  return {
    list: (sandbox: string, query: QueryInput<"files.list">, given: Signal = {}) =>
      call(to, "files.list", { params: { sandbox }, query, ...given }),
    remove: (sandbox: string, query: QueryInput<"files.remove">, given: Signal = {}) =>
      call(to, "files.remove", { params: { sandbox }, query, ...given }),
    /** A stream: what is not read is not sent. */
    async read(sandbox: string, query: QueryInput<"files.read">, given: Signal = {}): Promise<ReadableStream<Uint8Array>> {
      return streamOf(await send(to, "files.read", { input: { params: { sandbox }, query, ...given }, accept: "*/*" }));
    },
    write: (sandbox: string, query: QueryInput<"files.write">, body: BodyInput<"files.write">, given: Signal = {}) =>
      call(to, "files.write", { params: { sandbox }, query, body, ...given }),
    info: (sandbox: string, query: QueryInput<"files.info">, given: Signal = {}) =>
      call(to, "files.info", { params: { sandbox }, query, ...given }),
    makeFolder: (sandbox: string, body: BodyInput<"files.makeFolder">, given: Signal = {}) =>
      call(to, "files.makeFolder", { params: { sandbox }, body, ...given }),
    move: (sandbox: string, body: BodyInput<"files.move">, given: Signal = {}) =>
      call(to, "files.move", { params: { sandbox }, body, ...given }),
    /**
     * What changes from the moment the promise resolved, until the signal. Not taken up again: what happens while
     * nobody watches is not kept.
     */
    watch: (sandbox: string, query: QueryInput<"files.watch">, given: Signal = {}): Promise<AsyncIterable<EventData<"files.watch">>> =>
      openEvents(to, "files.watch", { params: { sandbox }, query, ...given }),
    /** A pax archive. The stream fails when something goes wrong in the middle. */
    async pack(sandbox: string, query: QueryInput<"files.pack">, given: Signal = {}): Promise<ReadableStream<Uint8Array>> {
      return streamOf(await send(to, "files.pack", { input: { params: { sandbox }, query, ...given }, accept: "*/*" }));
    },
    unpack: (sandbox: string, query: QueryInput<"files.unpack">, body: BodyInput<"files.unpack">, given: Signal = {}) =>
      call(to, "files.unpack", { params: { sandbox }, query, body, ...given }),
  };
}
