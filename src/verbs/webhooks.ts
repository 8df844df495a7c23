import { z } from "zod";
import { reachOfWebhook } from "../contract/api/required-scopes.ts";
import { auditName, auditOrigin } from "../contract/audit/audit-text.ts";
import type { OwnerView } from "../contract/token/owner.ts";
import {
  Attempt,
  CreateWebhook,
  DeliveryView,
  ListDeliveries,
  NewWebhook,
  ReplayDeliveries,
  WebhookView,
} from "../contract/webhook/webhook-verbs.ts";
import { type VerbsOf, verb, verbOfType } from "./verb.ts";

/**
 * Webhooks: the station posts run events to URLs. A webhook is named by its id or name; the verbs throw `not_found`.
 * Only a running station sends events, including those that happened while no station ran.
 */
export const webhooks = {
  /**
   * Creates a webhook that starts with the next event. `as`: its owner, and whose runs it reports. Throws `invalid`,
   * `exists`, `busy`.
   */
  create: verbOfType<(request: CreateWebhook, options?: { as?: OwnerView }) => Promise<NewWebhook>>()({
    path: "POST /v1/webhooks",
    body: CreateWebhook,
    answer: { status: 201, json: NewWebhook },
    reaches: reachOfWebhook,
    audited: ({ name, url }: z.output<typeof CreateWebhook>) => ({ name: auditName(name), url: auditOrigin(url) }),
    shownOnce: true,
    scope: "run",
    owned: "by hand",
    summary: "Create a webhook that receives run events from now on. Only this answer contains its signing secret.",
  }),
  get: verb({
    path: "GET /v1/webhooks/{webhook}",
    gives: WebhookView,
    scope: "read",
    owned: "by hand",
    summary: "Get one webhook.",
  }),
  /** Sorted by name. */
  list: verb({
    path: "GET /v1/webhooks",
    gives: z.array(WebhookView),
    key: "webhooks",
    scope: "read",
    owned: "by hand",
    summary: "List webhooks.",
  }),
  remove: verb({
    path: "DELETE /v1/webhooks/{webhook}",
    gives: WebhookView,
    scope: "run",
    owned: "by hand",
    summary: "Remove a webhook with its deliveries.",
  }),
  /** Sends nothing until `resume`, which then sends the missed events. */
  pause: verb({
    path: "POST /v1/webhooks/{webhook}/pause",
    gives: WebhookView,
    scope: "run",
    owned: "by hand",
    summary: "Pause a webhook: send nothing until it is resumed.",
  }),
  resume: verb({
    path: "POST /v1/webhooks/{webhook}/resume",
    gives: WebhookView,
    scope: "run",
    owned: "by hand",
    summary: "Resume a webhook, and send the events it missed.",
  }),
  /** Lists the latest sent, retrying and dead deliveries, newest first. */
  deliveries: verb({
    path: "GET /v1/webhooks/{webhook}/deliveries",
    takes: ListDeliveries,
    gives: z.array(DeliveryView),
    key: "deliveries",
    scope: "read",
    owned: "webhook",
    summary: "List a webhook's deliveries: sent, retrying or dead, newest first.",
  }),
  /** Retries deliveries. Resolves with their number. Throws `not_found` for a delivery that is not stored. */
  replay: verb({
    path: "POST /v1/webhooks/{webhook}/replay",
    takes: ReplayDeliveries,
    bodyOptional: true,
    gives: z.object({ replayed: z.int().nonnegative() }),
    status: 202,
    scope: "run",
    owned: "webhook",
    summary: "Send a delivery again, or all dead letters.",
  }),
  /** Sends a test message at once, without retries. */
  test: verb({
    path: "POST /v1/webhooks/{webhook}/test",
    gives: Attempt,
    scope: "run",
    owned: "webhook",
    summary: "Send a webhook one test message and report the result.",
  }),
};

export type WebhookVerbs = VerbsOf<typeof webhooks>;
