import type { BodyInput, EventData, QueryInput } from "../../contract/api/routes.ts";
import { eventData } from "../event-stream.ts";
import { type Connection, call, type Signal, send, streamOf } from "../request.ts";

/** The first four are for programs in a sandbox, with its own token; the others for its owner. */
export function insideCalls(to: Connection) {
  return {
    report: (body: BodyInput<"inside.report">, given: Signal = {}) => call(to, "inside.report", { body, ...given }),
    takeMessages: async (given: Signal = {}) => (await call(to, "inside.takeMessages", given)).messages,
    beat: async (given: Signal = {}) => (await call(to, "inside.beat", given)).control,
    putArtifact: (artifact: string, body: BodyInput<"inside.putArtifact">, given: Signal = {}) =>
      call(to, "inside.putArtifact", { params: { artifact }, body, ...given }),
    view: (sandbox: string, given: Signal = {}) => call(to, "inside.view", { params: { sandbox }, ...given }),
    tell: (sandbox: string, body: BodyInput<"inside.tell">, given: Signal = {}) =>
      call(to, "inside.tell", { params: { sandbox }, body, ...given }),
    events: async (sandbox: string, query: QueryInput<"inside.events"> = {}, given: Signal = {}) =>
      (await call(to, "inside.events", { params: { sandbox }, query, ...given })).events,
    /** The same, then those to come, each once, until the signal, whatever becomes of the connection. */
    follow(sandbox: string, options: { fromSeq?: number } & Signal = {}): AsyncIterable<EventData<"inside.events">> {
      const { fromSeq, ...given } = options;
      const query = fromSeq === undefined ? {} : { fromSeq };
      return eventData(to, "inside.events", { input: { params: { sandbox }, query, ...given }, resume: true });
    },
    artifacts: async (thing: string, given: Signal = {}) => (await call(to, "inside.artifacts", { params: { thing }, ...given })).artifacts,
    async readArtifact(thing: string, artifact: string, given: Signal = {}): Promise<ReadableStream<Uint8Array>> {
      return streamOf(await send(to, "inside.readArtifact", { input: { params: { thing, artifact }, ...given }, accept: "*/*" }));
    },
  };
}
