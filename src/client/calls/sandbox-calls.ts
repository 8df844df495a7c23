import type { BodyInput, EventData } from "../../verbs/routes.ts";
import { derivedCalls } from "../derived-calls.ts";
import { eventData } from "../event-stream.ts";
import { type Connection, call, type Signal } from "../request.ts";

export function sandboxCalls(to: Connection) {
  return {
    ...derivedCalls(to, "sandboxes"),
    create: (body: BodyInput<"sandboxes.create"> = {}, options: Signal = {}) => call(to, "sandboxes.create", { body, ...options }),
    /** Runs a command and returns its whole output. The signal kills it. */
    exec: (sandbox: string, body: BodyInput<"sandboxes.exec">, options: Signal = {}) =>
      call(to, "sandboxes.exec", { params: { sandbox }, body, ...options }),
    /**
     * Like `exec`, but yields output while the command runs. Not resumed after a break: the station ends a command
     * whose caller disconnects.
     */
    execEvents: (sandbox: string, body: BodyInput<"sandboxes.exec">, options: Signal = {}) =>
      eventData<EventData<"sandboxes.exec">>(to, "sandboxes.exec", { input: { params: { sandbox }, body, ...options }, resume: false }),
  };
}
