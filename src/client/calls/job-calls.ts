import type { BodyInput, QueryInput } from "../../verbs/routes.ts";
import { derivedCalls } from "../derived-calls.ts";
import { type Connection, call, type Signal } from "../request.ts";

export function mergeCalls(to: Connection) {
  return {
    ...derivedCalls(to, "merges"),
    start: (body: BodyInput<"merges.start">, options: Signal = {}) => call(to, "merges.start", { body, ...options }),
    list: (query: QueryInput<"merges.list"> = {}, options: Signal = {}) => call(to, "merges.list", { query, ...options }),
  };
}

export function bestCalls(to: Connection) {
  return {
    ...derivedCalls(to, "bests"),
    start: (body: BodyInput<"bests.start">, options: Signal = {}) => call(to, "bests.start", { body, ...options }),
    list: (query: QueryInput<"bests.list"> = {}, options: Signal = {}) => call(to, "bests.list", { query, ...options }),
  };
}

export function workflowCalls(to: Connection) {
  return {
    ...derivedCalls(to, "workflows"),
    list: (query: QueryInput<"workflows.list"> = {}, options: Signal = {}) => call(to, "workflows.list", { query, ...options }),
  };
}
