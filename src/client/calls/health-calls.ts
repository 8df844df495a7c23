import { type Connection, call, type Signal } from "../request.ts";

export function healthCalls(to: Connection) {
  return {
    list: (given: Signal = {}) => call(to, "health.list", given),
    incidents: async (given: Signal = {}) => (await call(to, "health.incidents", given)).incidents,
    incident: (incident: string, given: Signal = {}) => call(to, "health.incident", { params: { incident }, ...given }),
  };
}
