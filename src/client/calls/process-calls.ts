import type { BodyInput, EventData, QueryInput } from "../../contract/api/routes.ts";
import { eventData } from "../event-stream.ts";
import { type Connection, call, type Signal } from "../request.ts";

export function processCalls(to: Connection) {
  const of = (sandbox: string, process: string) => ({ params: { sandbox, process } });
  return {
    list: async (sandbox: string, given: Signal = {}) => (await call(to, "processes.list", { params: { sandbox }, ...given })).processes,
    /** Starts a command that outlives the call. */
    start: (sandbox: string, body: BodyInput<"processes.start">, given: Signal = {}) =>
      call(to, "processes.start", { params: { sandbox }, body, ...given }),
    /** What is kept of its output. */
    output: (sandbox: string, process: string, query: QueryInput<"processes.output"> = {}, given: Signal = {}) =>
      call(to, "processes.output", { ...of(sandbox, process), query, ...given }),
    /** The same, then what it goes on to write, and at last how it ended. */
    outputEvents: (sandbox: string, process: string, query: QueryInput<"processes.output"> = {}, given: Signal = {}) =>
      eventData<EventData<"processes.output">>(to, "processes.output", {
        input: { ...of(sandbox, process), query, ...given },
        resume: false,
      }),
    input: (sandbox: string, process: string, body: BodyInput<"processes.input">, given: Signal = {}) =>
      call(to, "processes.input", { ...of(sandbox, process), body, ...given }),
    closeInput: (sandbox: string, process: string, given: Signal = {}) =>
      call(to, "processes.closeInput", { ...of(sandbox, process), ...given }),
    resize: (sandbox: string, process: string, body: BodyInput<"processes.resize">, given: Signal = {}) =>
      call(to, "processes.resize", { ...of(sandbox, process), body, ...given }),
    signal: (sandbox: string, process: string, body: BodyInput<"processes.signal">, given: Signal = {}) =>
      call(to, "processes.signal", { ...of(sandbox, process), body, ...given }),
    kill: (sandbox: string, process: string, given: Signal = {}) => call(to, "processes.kill", { ...of(sandbox, process), ...given }),
    forget: (sandbox: string, process: string, given: Signal = {}) => call(to, "processes.forget", { ...of(sandbox, process), ...given }),
  };
}
