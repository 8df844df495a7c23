import type { BodyInput, EventData, QueryInput } from "../../contract/api/routes.ts";
import { eventData } from "../event-stream.ts";
import { type Connection, call, type Signal } from "../request.ts";

export function sandboxCalls(to: Connection) {
  return {
    create: (body: BodyInput<"sandboxes.create"> = {}, given: Signal = {}) => call(to, "sandboxes.create", { body, ...given }),
    list: ({ signal, ...query }: QueryInput<"sandboxes.list"> & Signal = {}) =>
      call(to, "sandboxes.list", { query, ...(signal && { signal }) }),
    get: (sandbox: string, given: Signal = {}) => call(to, "sandboxes.get", { params: { sandbox }, ...given }),
    remove: (sandbox: string, given: Signal = {}) => call(to, "sandboxes.remove", { params: { sandbox }, ...given }),
    stats: (sandbox: string, given: Signal = {}) => call(to, "sandboxes.stats", { params: { sandbox }, ...given }),
    pause: (sandbox: string, given: Signal = {}) => call(to, "sandboxes.pause", { params: { sandbox }, ...given }),
    resume: (sandbox: string, given: Signal = {}) => call(to, "sandboxes.resume", { params: { sandbox }, ...given }),
    /** A null takes a label away. */
    label: (sandbox: string, body: BodyInput<"sandboxes.label">, given: Signal = {}) =>
      call(to, "sandboxes.label", { params: { sandbox }, body, ...given }),
    fork: (sandbox: string, given: Signal = {}) => call(to, "sandboxes.fork", { params: { sandbox }, ...given }),
    snapshot: (sandbox: string, body: BodyInput<"sandboxes.snapshot"> = {}, given: Signal = {}) =>
      call(to, "sandboxes.snapshot", { params: { sandbox }, body, ...given }),
    snapshots: ({ signal, ...query }: QueryInput<"snapshots.list"> & Signal = {}) =>
      call(to, "snapshots.list", { query, ...(signal && { signal }) }),
    removeSnapshot: (snapshot: string, given: Signal = {}) => call(to, "snapshots.remove", { params: { snapshot }, ...given }),
    /** Runs a command and gives its whole output. The signal ends it. */
    exec: (sandbox: string, body: BodyInput<"sandboxes.exec">, given: Signal = {}) =>
      call(to, "sandboxes.exec", { params: { sandbox }, body, ...given }),
    /** The same while it runs. Not taken up again: a command whose caller has gone away is ended. */
    execEvents: (sandbox: string, body: BodyInput<"sandboxes.exec">, given: Signal = {}) =>
      eventData<EventData<"sandboxes.exec">>(to, "sandboxes.exec", { input: { params: { sandbox }, body, ...given }, resume: false }),
    changedFiles: async (sandbox: string, given: Signal = {}) =>
      (await call(to, "sandboxes.changedFiles", { params: { sandbox }, ...given })).changed,
    sweep: (given: Signal = {}) => call(to, "sandboxes.sweep", given),
  };
}
