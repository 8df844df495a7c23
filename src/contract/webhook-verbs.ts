import { z } from "zod";
import { DrivenRef } from "./driven-kinds.ts";
import { Owner } from "./owner.ts";

/** Arguments and answers of the station's verbs about webhooks: where it tells others what happened. */

export const WebhookId = z.string().regex(/^whk_[a-z2-7]{12}$/, "a webhook's id looks like whk_k3v7q2m5x4ab");
export type WebhookId = z.infer<typeof WebhookId>;

export const WebhookName = z
  .string()
  .regex(/^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/, "1 to 64 letters, digits, dots, dashes or underscores, not beginning with a dot");

/** A type of event, all of a family (`run.*`), or `*`. */
const EventPattern = z
  .string()
  .max(64)
  .regex(/^(?:\*|[a-z_]+\.(?:\*|[a-z_]+))$/, "a type of event such as run.ended, a family such as run.*, or *");

/** When somebody has to look: a run began, waits for an answer, is held, or is over; what hangs is left to a person. */
export const webhookEventsDefault = ["run.created", "run.paused", "permission.asked", "run.ended", "health.escalated"];

export const CreateWebhook = z.strictObject({
  name: WebhookName,
  url: z.url({ protocol: /^https?$/ }).max(2048),
  events: z.array(EventPattern).min(1).max(50).default(webhookEventsDefault),
  /** Also to addresses of private networks and of this machine, and without TLS. */
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
  /** Why nothing is sent at the moment, or null. */
  paused: z.string().nullable(),
  /** Deliveries that failed and are tried again. */
  retrying: z.int().nonnegative(),
  /** Deliveries that were given up. */
  dead: z.int().nonnegative(),
});
export type WebhookView = z.infer<typeof WebhookView>;

/** The only time that the secret is shown by which its receiver knows that a message is from here. */
export const NewWebhook = WebhookView.extend({ secret: z.string() });
export type NewWebhook = z.infer<typeof NewWebhook>;

export const DeliveryState = z.enum(["delivered", "retrying", "dead"]);

export const DeliveryView = z.object({
  /** The `webhook-id` that it carries, the same in every attempt. */
  id: z.string(),
  state: DeliveryState,
  /** Whose event it is: one of them. */
  run: z.string().nullable(),
  sandbox: z.string().nullable(),
  driven: DrivenRef.nullable(),
  seq: z.int().positive(),
  type: z.string(),
  attempts: z.int().positive(),
  /** Of the last attempt. */
  at: z.iso.datetime(),
  /** Of the next one. */
  nextAt: z.iso.datetime().nullable(),
  /** What was answered, or null. */
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
  /** One delivery; absent: all that were given up. */
  delivery: z.string().min(1).max(200).optional(),
});
export type ReplayDeliveries = z.input<typeof ReplayDeliveries>;

/** What came of one attempt. */
export const Attempt = z.object({ ok: z.boolean(), status: z.int().nullable(), error: z.string().nullable(), durationMs: z.number() });
export type Attempt = z.infer<typeof Attempt>;
