import type { BodyInput } from "../../contract/api/routes.ts";
import { type Connection, call, type Signal } from "../request.ts";

/** Values go in and never come out. They are the token's owner's. */
export function secretCalls(to: Connection) {
  return {
    set: (secret: string, body: BodyInput<"secrets.set">, given: Signal = {}) =>
      call(to, "secrets.set", { params: { secret }, body, ...given }),
    list: async (given: Signal = {}) => (await call(to, "secrets.list", given)).secrets,
    remove: (secret: string, given: Signal = {}) => call(to, "secrets.remove", { params: { secret }, ...given }),
  };
}
