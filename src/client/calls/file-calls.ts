import type { BodyInput, EventData, QueryInput } from "../../verbs/routes.ts";
import { openEvents } from "../event-stream.ts";
import { type Connection, call, type Signal, send, streamOf } from "../request.ts";

export function fileCalls(to: Connection) {
  return {
    list: (sandbox: string, query: QueryInput<"files.list">, options: Signal = {}) =>
      call(to, "files.list", { params: { sandbox }, query, ...options }),
    remove: (sandbox: string, query: QueryInput<"files.remove">, options: Signal = {}) =>
      call(to, "files.remove", { params: { sandbox }, query, ...options }),
    /** Returns a stream with flow control: the station sends only as fast as you read. */
    async read(sandbox: string, query: QueryInput<"files.read">, options: Signal = {}): Promise<ReadableStream<Uint8Array>> {
      return streamOf(await send(to, "files.read", { input: { params: { sandbox }, query, ...options }, accept: "*/*" }));
    },
    write: (sandbox: string, query: QueryInput<"files.write">, body: BodyInput<"files.write">, options: Signal = {}) =>
      call(to, "files.write", { params: { sandbox }, query, body, ...options }),
    info: (sandbox: string, query: QueryInput<"files.info">, options: Signal = {}) =>
      call(to, "files.info", { params: { sandbox }, query, ...options }),
    makeFolder: (sandbox: string, body: BodyInput<"files.makeFolder">, options: Signal = {}) =>
      call(to, "files.makeFolder", { params: { sandbox }, body, ...options }),
    move: (sandbox: string, body: BodyInput<"files.move">, options: Signal = {}) =>
      call(to, "files.move", { params: { sandbox }, body, ...options }),
    /**
     * Resolves once the watch is set up, then yields changes until the signal. Not resumed after a break: no changes
     * are recorded without a watcher.
     */
    watch: (sandbox: string, query: QueryInput<"files.watch">, options: Signal = {}): Promise<AsyncIterable<EventData<"files.watch">>> =>
      openEvents(to, "files.watch", { params: { sandbox }, query, ...options }),
    /** Returns a pax archive. The stream fails if an error occurs midway. */
    async pack(sandbox: string, query: QueryInput<"files.pack">, options: Signal = {}): Promise<ReadableStream<Uint8Array>> {
      return streamOf(await send(to, "files.pack", { input: { params: { sandbox }, query, ...options }, accept: "*/*" }));
    },
    unpack: (sandbox: string, query: QueryInput<"files.unpack">, body: BodyInput<"files.unpack">, options: Signal = {}) =>
      call(to, "files.unpack", { params: { sandbox }, query, body, ...options }),
  };
}
