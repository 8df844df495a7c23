import type { OwnerView } from "../../contract/owner.ts";
import type {
  Attempt,
  CreateWebhook,
  DeliveryView,
  ListDeliveries,
  NewWebhook,
  ReplayDeliveries,
  WebhookView,
} from "../../contract/webhook-verbs.ts";

/**
 * Where the station tells others what happens in runs. All that take one take its id or name, and throw `not_found`.
 * Events are sent while a station serves; what happens meanwhile is not lost, and sent once one does.
 */
export interface WebhookVerbs {
  /**
   * From the next event on. `as`: whose it is, and whose runs it tells of. Throws `invalid`, `exists`, `busy` for too
   * many.
   */
  create(request: CreateWebhook, options?: { as?: OwnerView }): Promise<NewWebhook>;
  get(webhook: string): Promise<WebhookView>;
  /** By name. */
  list(): Promise<WebhookView[]>;
  remove(webhook: string): Promise<WebhookView>;
  /** Sends nothing until `resume`; what happens meanwhile is sent then. */
  pause(webhook: string): Promise<WebhookView>;
  resume(webhook: string): Promise<WebhookView>;
  /** The last ones that were sent, those that are tried again, and those that were given up; the newest first. */
  deliveries(webhook: string, options?: ListDeliveries): Promise<DeliveryView[]>;
  /** Tries deliveries again; resolves with how many. Throws `not_found` for one that is not kept. */
  replay(webhook: string, options?: ReplayDeliveries): Promise<{ replayed: number }>;
  /** Sends a test message, at once and once. */
  test(webhook: string): Promise<Attempt>;
}
