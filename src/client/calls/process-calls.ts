import type { BodyInput, EventData, QueryInput } from "../../verbs/routes.ts";
import { eventData } from "../event-stream.ts";
import { type Connection, call, type Signal } from "../request.ts";

export function processCalls(to: Connection) {
  const of = (sandbox: string, process: string) => ({ params: { sandbox, process } });
  return {
    list: async (sandbox: string, options: Signal = {}) =>
      (await call(to, "processes.list", { params: { sandbox }, ...options })).processes,
    /** Starts a command that outlives the call. */
    start: (sandbox: string, body: BodyInput<"processes.start">, options: Signal = {}) =>
      call(to, "processes.start", { params: { sandbox }, body, ...options }),
    /** Returns the stored output. */
    output: (sandbox: string, process: string, query: QueryInput<"processes.output"> = {}, options: Signal = {}) =>
      call(to, "processes.output", { ...of(sandbox, process), query, ...options }),
    /** Yields the stored output, then further output, and how the command ended. */
    outputEvents: (sandbox: string, process: string, query: QueryInput<"processes.output"> = {}, options: Signal = {}) =>
      eventData<EventData<"processes.output">>(to, "processes.output", {
        input: { ...of(sandbox, process), query, ...options },
        resume: false,
      }),
    input: (sandbox: string, process: string, body: BodyInput<"processes.input">, options: Signal = {}) =>
      call(to, "processes.input", { ...of(sandbox, process), body, ...options }),
    closeInput: (sandbox: string, process: string, options: Signal = {}) =>
      call(to, "processes.closeInput", { ...of(sandbox, process), ...options }),
    resize: (sandbox: string, process: string, body: BodyInput<"processes.resize">, options: Signal = {}) =>
      call(to, "processes.resize", { ...of(sandbox, process), body, ...options }),
    signal: (sandbox: string, process: string, body: BodyInput<"processes.signal">, options: Signal = {}) =>
      call(to, "processes.signal", { ...of(sandbox, process), body, ...options }),
    kill: (sandbox: string, process: string, options: Signal = {}) => call(to, "processes.kill", { ...of(sandbox, process), ...options }),
    forget: (sandbox: string, process: string, options: Signal = {}) =>
      call(to, "processes.forget", { ...of(sandbox, process), ...options }),
  };
}
