import type { BodyInput, QueryInput } from "../../contract/api/routes.ts";
import { type Connection, call, type Signal } from "../request.ts";

export function webhookCalls(to: Connection) {
  return {
    create: (body: BodyInput<"webhooks.create">, given: Signal = {}) => call(to, "webhooks.create", { body, ...given }),
    list: async (given: Signal = {}) => (await call(to, "webhooks.list", given)).webhooks,
    get: (webhook: string, given: Signal = {}) => call(to, "webhooks.get", { params: { webhook }, ...given }),
    remove: (webhook: string, given: Signal = {}) => call(to, "webhooks.remove", { params: { webhook }, ...given }),
    pause: (webhook: string, given: Signal = {}) => call(to, "webhooks.pause", { params: { webhook }, ...given }),
    resume: (webhook: string, given: Signal = {}) => call(to, "webhooks.resume", { params: { webhook }, ...given }),
    deliveries: async (webhook: string, query: QueryInput<"webhooks.deliveries"> = {}, given: Signal = {}) =>
      (await call(to, "webhooks.deliveries", { params: { webhook }, query, ...given })).deliveries,
    replay: (webhook: string, body: BodyInput<"webhooks.replay"> = {}, given: Signal = {}) =>
      call(to, "webhooks.replay", { params: { webhook }, body, ...given }),
    test: (webhook: string, given: Signal = {}) => call(to, "webhooks.test", { params: { webhook }, ...given }),
  };
}
