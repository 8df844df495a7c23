import { z } from "zod";
import { auditName, auditOrigin } from "../audit-text.ts";
import { Attempt, CreateWebhook, DeliveryView, ListDeliveries, NewWebhook, ReplayDeliveries, WebhookView } from "../webhook-verbs.ts";
import { NameOrId } from "./name-or-id.ts";
import { reachOfWebhook } from "./reach.ts";
import type { Route } from "./route.ts";

const params = { webhook: NameOrId };

export const webhookRoutes = {
  "webhooks.create": {
    summary: "Make a webhook: from now on events of runs are posted to an address. Its secret is shown here alone.",
    scope: "run",
    body: CreateWebhook,
    reaches: reachOfWebhook,
    audited: ({ name, url }: z.output<typeof CreateWebhook>) => ({ name: auditName(name), url: auditOrigin(url) }),
    shownOnce: true,
    answer: { status: 201, json: NewWebhook },
  },
  "webhooks.list": { summary: "List webhooks.", scope: "read", answer: { json: z.object({ webhooks: z.array(WebhookView) }) } },
  "webhooks.get": { summary: "One webhook.", scope: "read", params, answer: { json: WebhookView } },
  "webhooks.remove": { summary: "Remove a webhook with its deliveries.", scope: "run", params, answer: { json: WebhookView } },
  "webhooks.pause": { summary: "Send nothing to a webhook until it is resumed.", scope: "run", params, answer: { json: WebhookView } },
  "webhooks.resume": { summary: "Send what happened meanwhile, and go on.", scope: "run", params, answer: { json: WebhookView } },
  "webhooks.deliveries": {
    summary: "What was sent last, what is tried again, and what was given up; the newest first.",
    scope: "read",
    params,
    query: ListDeliveries,
    answer: { json: z.object({ deliveries: z.array(DeliveryView) }) },
  },
  "webhooks.replay": {
    summary: "Send a delivery again, or all that were given up.",
    scope: "run",
    params,
    body: ReplayDeliveries,
    bodyOptional: true,
    answer: { status: 202, json: z.object({ replayed: z.int().nonnegative() }) },
  },
  "webhooks.test": {
    summary: "Send a webhook a test message, once, and say what came of it.",
    scope: "run",
    params,
    answer: { json: Attempt },
  },
} as const satisfies Record<string, Route>;
