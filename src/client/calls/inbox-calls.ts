import { type Connection, call, type Signal } from "../request.ts";

export function inboxCalls(to: Connection) {
  return { list: (given: Signal = {}) => call(to, "inbox.list", given) };
}
