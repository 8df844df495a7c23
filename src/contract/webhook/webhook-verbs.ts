import { z } from "zod";
import { JobRef } from "../durable/durable-kinds.ts";
import { Owner } from "../token/owner.ts";
import { deliveryStates } from "./delivery-states.ts";

/** Arguments and answers of the station's verbs for webhooks, which report events to other servers. */

export const WebhookId = z.string().regex(/^whk_[a-z2-7]{12}$/, "a webhook id looks like whk_k3v7q2m5x4ab");
export type WebhookId = z.infer<typeof WebhookId>;

export const WebhookName = z
  .string()
  .regex(/^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/, "must be 1 to 64 letters, digits, dots, dashes or underscores, and not begin with a dot");

/** An event type, a family of types (`run.*`), or `*`. */
const EventPattern = z
  .string()
  .max(64)
  .regex(/^(?:\*|[a-z_]+\.(?:\*|[a-z_]+))$/, "must be an event type such as run.ended, a family such as run.*, or *");

/**
 * Events that may need attention: a run began, is paused, asks a question or ended, or a health problem needs a person.
 */
export const webhookEventsDefault = ["run.created", "run.forked", "run.paused", "permission.asked", "run.ended", "health.escalated"];

export const CreateWebhook = z.strictObject({
  name: WebhookName,
  url: z.url({ protocol: /^https?$/ }).max(2048),
  events: z.array(EventPattern).min(1).max(50).default(webhookEventsDefault),
  /** Whether addresses of private networks and of this machine, and connections without TLS, are allowed. */
  allowPrivate: z.boolean().default(false),
});
export type CreateWebhook = z.input<typeof CreateWebhook>;

export const WebhookView = z.object({
  id: WebhookId,
  name: WebhookName,
  url: z.string(),
  owner: Owner,
  events: z.array(z.string()),
  allowPrivate: z.boolean(),
  createdAt: z.iso.datetime(),
  /** Why deliveries are currently paused, or null. */
  paused: z.string().nullable(),
  /** Failed deliveries that will be retried. */
  retrying: z.int().nonnegative(),
  /** Deliveries that were given up (dead letters). */
  dead: z.int().nonnegative(),
});
export type WebhookView = z.infer<typeof WebhookView>;

/** The only answer that contains the secret with which the receiver verifies messages. */
export const NewWebhook = WebhookView.extend({ secret: z.string() });
export type NewWebhook = z.infer<typeof NewWebhook>;

const DeliveryState = z.enum(deliveryStates);

export const DeliveryView = z.object({
  /** The `webhook-id` header, the same for every attempt. */
  id: z.string(),
  state: DeliveryState,
  /** The subject of the event; exactly one of these is set. */
  run: z.string().nullable(),
  sandbox: z.string().nullable(),
  driven: JobRef.nullable(),
  seq: z.int().positive(),
  type: z.string(),
  attempts: z.int().positive(),
  /** Time of the last attempt. */
  at: z.iso.datetime(),
  /** Time of the next attempt. */
  nextAt: z.iso.datetime().nullable(),
  /** The HTTP status of the answer, or null. */
  status: z.int().nullable(),
  error: z.string().nullable(),
});
export type DeliveryView = z.infer<typeof DeliveryView>;

export const ListDeliveries = z.strictObject({
  state: DeliveryState.optional(),
  limit: z.int().min(1).max(1000).default(100),
});
export type ListDeliveries = z.input<typeof ListDeliveries>;

export const ReplayDeliveries = z.strictObject({
  /** One delivery; absent: all dead ones. */
  delivery: z.string().min(1).max(200).optional(),
});
export type ReplayDeliveries = z.input<typeof ReplayDeliveries>;

/** The result of one attempt. */
export const Attempt = z.object({ ok: z.boolean(), status: z.int().nullable(), error: z.string().nullable(), durationMs: z.number() });
export type Attempt = z.infer<typeof Attempt>;
