import { randomBytes } from "node:crypto";
import { join } from "node:path";
import { auditOrigin } from "../../contract/audit/audit-text.ts";
import { CaissonError } from "../../contract/error/error.ts";
import { parseRequest } from "../../contract/error/parse-request.ts";
import { LOCAL_OWNER, type OwnerView } from "../../contract/token/owner.ts";
import { noSuchWebhook } from "../../contract/webhook/no-such-webhook.ts";
import {
  type Attempt,
  CreateWebhook,
  type DeliveryView,
  ListDeliveries,
  ReplayDeliveries,
  type WebhookView,
} from "../../contract/webhook/webhook-verbs.ts";
import { newId } from "../../lib/new-id.ts";
import { postOutbound } from "../../network/outbound/post-outbound.ts";
import type { WebhookVerbs } from "../../verbs/webhooks.ts";
import { cloudEvent } from "./cloud-event.ts";
import { attempt, type DeliverParts, deliverAll } from "./deliver.ts";
import { type Delivery, openWebhookStore, type WebhookRecord } from "./webhook-store.ts";

const WEBHOOKS_MAX = 200;
/** The limit for one owner, which leaves room for others. */
const WEBHOOKS_PER_OWNER_MAX = 50;
const SECRET_BYTES = 24;
const everybody: OwnerView = { owner: LOCAL_OWNER, sees: "everything" };

export interface LocalWebhooks extends WebhookVerbs {
  /** Delivers events until the signal fires. Only the process that serves the station calls this. */
  deliver(options: Pick<DeliverParts, "stationFor" | "onDefect" | "signal">): Promise<void>;
  close(): Promise<void>;
}

export interface WebhookOptions {
  stateDir: string;
  /** Returns the position of the last event of the log. */
  lastPosition: () => Promise<number>;
  /** Receives notices for the user. */
  notice?: (text: string) => void;
  post?: typeof postOutbound;
  now?: () => number;
}

export function createLocalWebhooks(options: WebhookOptions): LocalWebhooks {
  const { post = postOutbound, now = Date.now } = options;
  const store = openWebhookStore(join(options.stateDir, "webhooks.db"), {
    onDamaged: (aside) => options.notice?.(`the webhook database was damaged and moved to ${aside}; create your webhooks again`),
  });
  const woken = new Set<() => void>();
  const wake = () => {
    for (const each of woken) each();
  };
  const find = (word: string): WebhookRecord => {
    const found = store.all().filter(({ id, name }) => id === word || name === word);
    // Names are unique per owner; the machine's own user takes precedence.
    const [chosen] = [...found.filter((record) => record.view.owner === LOCAL_OWNER), ...found];
    if (chosen !== undefined) return chosen;
    throw noSuchWebhook(word);
  };
  const view = ({ secret: _, reached: _reached, view: { owner }, ...record }: WebhookRecord): WebhookView => ({
    ...record,
    owner,
    retrying: store.count(record.id, "retrying"),
    dead: store.count(record.id, "dead"),
  });
  const change = (word: string, changed: Partial<WebhookRecord>) => {
    const record = { ...find(word), ...changed };
    store.change(record);
    wake();
    return view(record);
  };
  return {
    async create(input, { as = everybody } = {}) {
      const request = parseRequest(CreateWebhook, input, "a webhook");
      checkUrl(request);
      const before = store.all();
      if (before.some(({ name, view: { owner } }) => name === request.name && owner === as.owner)) throw nameTaken(request.name);
      const own = before.filter(({ view: { owner } }) => owner === as.owner).length;
      if (own >= WEBHOOKS_PER_OWNER_MAX) throw tooMany(`${as.owner} already has ${own} webhooks, the limit for one owner`);
      if (before.length >= WEBHOOKS_MAX) throw tooMany(`there are ${before.length} webhooks already`);
      const record: WebhookRecord = {
        ...request,
        id: newId("whk"),
        view: as,
        secret: `whsec_${randomBytes(SECRET_BYTES).toString("base64")}`,
        createdAt: new Date(now()).toISOString(),
        paused: null,
        reached: await options.lastPosition(),
      };
      if (!store.add(record)) throw nameTaken(request.name);
      wake();
      return { ...view(record), secret: record.secret };
    },
    get: async (word) => view(find(word)),
    list: async () => store.all().map(view),
    async remove(word) {
      const record = find(word);
      const webhookView = view(record);
      store.remove(record.id);
      wake();
      return webhookView;
    },
    pause: async (word) => change(word, { paused: "paused by a user" }),
    resume: async (word) => change(word, { paused: null }),
    async deliveries(word, input = {}) {
      const { state, limit } = parseRequest(ListDeliveries, input, "deliveries");
      const { id } = find(word);
      return store.deliveries(id, state, limit).map((each) => deliveryView(id, each));
    },
    async replay(word, input = {}) {
      const { delivery } = parseRequest(ReplayDeliveries, input, "a replay");
      const { id } = find(word);
      const deliveries =
        delivery === undefined ? store.deliveries(id, "dead", 1000) : [orNoDelivery(store.delivery(id, positionOf(delivery)), delivery)];
      for (const each of deliveries) store.keep(id, { ...each, state: "retrying", attempts: 1, nextAt: new Date(now()).toISOString() });
      wake();
      return { replayed: deliveries.length };
    },
    async test(word) {
      const record = find(word);
      const at = new Date(now()).toISOString();
      const body = cloudEvent({ of: { kind: "run", id: "none" }, seq: 1, type: "webhook.test", at, data: { webhook: record.name } });
      const { ok, status, error, durationMs } = await attempt(record, { id: `msg_${record.id}_test-${now()}`, body, post, now });
      return { ok, status, error, durationMs } satisfies Attempt;
    },
    deliver: (parts) => deliverAll({ ...parts, store, post, now, woken }),
    close: async () => store.close(),
  };
}

function checkUrl({ url, allowPrivate }: { url: string; allowPrivate: boolean }): void {
  const { protocol, username, password } = new URL(url);
  if (username !== "" || password !== "") {
    throw new CaissonError("invalid", "a webhook URL must not contain a name or password", {
      hint: "Receivers authenticate messages by their signature.",
    });
  }
  if (protocol === "https:" || allowPrivate) return;
  throw new CaissonError("invalid", `${auditOrigin(url)} does not use https`, {
    hint: "Use https://. Only a webhook that may reach private addresses can use http://.",
  });
}

function nameTaken(name: string): CaissonError {
  return new CaissonError("exists", `there is already a webhook named ${name}`, {
    hint: "Choose another name. Run `caisson webhook ls` to list webhooks.",
  });
}

function positionOf(delivery: string): number {
  return Number(/_([0-9]{1,15})$/.exec(delivery)?.[1] ?? -1);
}

function orNoDelivery(delivery: Delivery | null, id: string): Delivery {
  if (delivery !== null) return delivery;
  throw new CaissonError("not_found", `the delivery ${JSON.stringify(id)} is not stored`, {
    hint: "Run `caisson webhook deliveries` to list the stored ones.",
  });
}

function deliveryView(webhook: string, { position, ...delivery }: Delivery): DeliveryView {
  // Older records do not name sandboxes or durable jobs, which had no events then.
  return { id: `msg_${webhook}_${position}`, ...delivery, sandbox: delivery.sandbox ?? null, driven: delivery.driven ?? null };
}

function tooMany(what: string): CaissonError {
  return new CaissonError("busy", what, { hint: "Remove some: `caisson webhook rm`." });
}
