import type { Handlers } from "../call.ts";

type Name = Extract<keyof Handlers, `webhooks.${string}`>;

export const webhookHandlers: Handlers<Name> = {
  "webhooks.create": async ({ station, body }) => ({ json: await station.webhooks.create(body) }),
  "webhooks.list": async ({ station }) => ({ json: { webhooks: await station.webhooks.list() } }),
  "webhooks.get": async ({ station, params }) => ({ json: await station.webhooks.get(params.webhook) }),
  "webhooks.remove": async ({ station, params }) => ({ json: await station.webhooks.remove(params.webhook) }),
  "webhooks.pause": async ({ station, params }) => ({ json: await station.webhooks.pause(params.webhook) }),
  "webhooks.resume": async ({ station, params }) => ({ json: await station.webhooks.resume(params.webhook) }),
  "webhooks.deliveries": async ({ station, params, query }) => ({
    json: { deliveries: await station.webhooks.deliveries(params.webhook, query) },
  }),
  "webhooks.replay": async ({ station, params, body }) => ({ json: await station.webhooks.replay(params.webhook, body) }),
  "webhooks.test": async ({ station, params }) => ({ json: await station.webhooks.test(params.webhook) }),
};
