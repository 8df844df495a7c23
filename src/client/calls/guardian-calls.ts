import type { QueryInput } from "../../contract/api/routes.ts";
import { type Connection, call, type Signal } from "../request.ts";

export function guardianCalls(to: Connection) {
  return {
    status: (given: Signal = {}) => call(to, "guardian.status", given),
    log: async (query: QueryInput<"guardian.log"> = {}, given: Signal = {}) =>
      (await call(to, "guardian.log", { query, ...given })).decisions,
    explain: (run: string, given: Signal = {}) => call(to, "guardian.explain", { params: { run }, ...given }),
  };
}
