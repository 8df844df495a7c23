import type { BodyInput, EventData, QueryInput } from "../../verbs/routes.ts";
import { derivedCalls } from "../derived-calls.ts";
import { eventData } from "../event-stream.ts";
import { type Connection, call, type Signal, send, streamOf } from "../request.ts";

/** `report`, `takeMessages`, `beat` and `putArtifact` are for programs in a sandbox, with its token. */
export function insideCalls(to: Connection) {
  return {
    ...derivedCalls(to, "inside"),
    report: (body: BodyInput<"inside.report">, options: Signal = {}) => call(to, "inside.report", { body, ...options }),
    takeMessages: async (options: Signal = {}) => (await call(to, "inside.takeMessages", options)).messages,
    beat: async (options: Signal = {}) => (await call(to, "inside.beat", options)).control,
    putArtifact: (artifact: string, body: BodyInput<"inside.putArtifact">, options: Signal = {}) =>
      call(to, "inside.putArtifact", { params: { artifact }, body, ...options }),
    events: async (sandbox: string, query: QueryInput<"inside.events"> = {}, options: Signal = {}) =>
      (await call(to, "inside.events", { params: { sandbox }, query, ...options })).events,
    /** Yields the stored events, then new ones, each once, until the signal. Reconnects as often as necessary. */
    follow(sandbox: string, { fromSeq, ...options }: { fromSeq?: number } & Signal = {}): AsyncIterable<EventData<"inside.events">> {
      const query = fromSeq === undefined ? {} : { fromSeq };
      return eventData(to, "inside.events", { input: { params: { sandbox }, query, ...options }, resume: true });
    },
    async readArtifact(thing: string, artifact: string, options: Signal = {}): Promise<ReadableStream<Uint8Array>> {
      return streamOf(await send(to, "inside.readArtifact", { input: { params: { thing, artifact }, ...options }, accept: "*/*" }));
    },
  };
}
