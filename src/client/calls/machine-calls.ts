import type { BodyInput, EventData, QueryInput } from "../../contract/api/routes.ts";
import { eventData } from "../event-stream.ts";
import { type Connection, call, type Signal, send, streamOf } from "../request.ts";

export function machineCalls(to: Connection) {
  return {
    doctor: (query: QueryInput<"machine.doctor"> = {}, given: Signal = {}) => call(to, "machine.doctor", { query, ...given }),
    find: (word: string, given: Signal = {}) => call(to, "machine.find", { query: { word }, ...given }),
    models: (query: QueryInput<"machine.models"> = {}, given: Signal = {}) => call(to, "machine.models", { query, ...given }),
    stats: (given: Signal = {}) => call(to, "machine.stats", given),
    usage: (given: Signal = {}) => call(to, "machine.usage", given),
    prune: (body: BodyInput<"machine.prune">, given: Signal = {}) => call(to, "machine.prune", { body, ...given }),
    /** A stream: what is not read is not sent. */
    async backup(body: BodyInput<"machine.backup"> = {}, given: Signal = {}): Promise<ReadableStream<Uint8Array>> {
      return streamOf(await send(to, "machine.backup", { input: { body, ...given }, accept: "*/*" }));
    },
    choose: async (body: BodyInput<"machine.choose">, given: Signal = {}) => (await call(to, "machine.choose", { body, ...given })).choice,
    attack: (body: BodyInput<"machine.attack"> = {}, given: Signal = {}) =>
      eventData<EventData<"machine.attack">>(to, "machine.attack", { input: { body, ...given }, resume: false }),
    conformance: (body: BodyInput<"machine.conformance"> = {}, given: Signal = {}) =>
      eventData<EventData<"machine.conformance">>(to, "machine.conformance", { input: { body, ...given }, resume: false }),
  };
}

export function imageCalls(to: Connection) {
  return {
    list: async (given: Signal = {}) => (await call(to, "images.list", given)).images,
    build: (body: BodyInput<"images.build">, given: Signal = {}) =>
      eventData<EventData<"images.build">>(to, "images.build", { input: { body, ...given }, resume: false }),
    remove: (image: string, given: Signal = {}) => call(to, "images.remove", { params: { image }, ...given }),
  };
}

export function agentCalls(to: Connection) {
  return {
    list: async (given: Signal = {}) => (await call(to, "agents.list", given)).agents,
    show: (name: string, options: Omit<BodyInput<"agents.show">, "name"> = {}, given: Signal = {}) =>
      call(to, "agents.show", { body: { name, ...options }, ...given }),
    validate: async (path: string, options: { as: string }, given: Signal = {}) =>
      (await call(to, "agents.validate", { body: { path, ...options }, ...given })).fault,
    filesAt: async (path: string, options: { as: string }, given: Signal = {}) =>
      (await call(to, "agents.filesAt", { body: { path, ...options }, ...given })).paths,
    judge: (path: string, given: Signal = {}) => call(to, "agents.judge", { body: { path }, ...given }),
    trust: (path: string, options: { digest: string }, given: Signal = {}) =>
      call(to, "agents.trust", { body: { path, ...options }, ...given }),
    trusted: async (given: Signal = {}) => (await call(to, "agents.trusted", given)).files,
    revoke: async (path: string, given: Signal = {}) => (await call(to, "agents.revoke", { body: { path }, ...given })).paths,
  };
}
