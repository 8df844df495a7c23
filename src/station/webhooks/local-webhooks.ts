import { randomBytes } from "node:crypto";
import { join } from "node:path";
import { auditOrigin } from "../../contract/audit-text.ts";
import { CaissonError } from "../../contract/error.ts";
import { LOCAL_OWNER, type OwnerView } from "../../contract/owner.ts";
import { parseRequest } from "../../contract/parse-request.ts";
import {
  type Attempt,
  CreateWebhook,
  type DeliveryView,
  ListDeliveries,
  ReplayDeliveries,
  type WebhookView,
} from "../../contract/webhook-verbs.ts";
import { newId } from "../../lib/new-id.ts";
import { postOutbound } from "../../network/outbound/post-outbound.ts";
import { cloudEvent } from "./cloud-event.ts";
import { attempt, type DeliverParts, deliverAll } from "./deliver.ts";
import { noSuchWebhook } from "./no-such-webhook.ts";
import type { WebhookVerbs } from "./verbs.ts";
import { type Delivery, openWebhookStore, type WebhookRecord } from "./webhook-store.ts";

const WEBHOOKS_MAX = 200;
/** Of one owner, so that others have room. */
const WEBHOOKS_PER_OWNER_MAX = 50;
const SECRET_BYTES = 24;
const everybody: OwnerView = { owner: LOCAL_OWNER, sees: "everything" };

export interface LocalWebhooks extends WebhookVerbs {
  /** Sends what happens, until the signal: for the one process that serves. */
  deliver(options: Pick<DeliverParts, "stationFor" | "onDefect" | "signal">): Promise<void>;
  close(): Promise<void>;
}

export interface WebhookOptions {
  stateDir: string;
  /** Of the last event of all. */
  lastPosition: () => Promise<number>;
  /** Told what its user should know. */
  notice?: (text: string) => void;
  post?: typeof postOutbound;
  now?: () => number;
}

export function createLocalWebhooks(options: WebhookOptions): LocalWebhooks {
  const { post = postOutbound, now = Date.now } = options;
  const store = openWebhookStore(join(options.stateDir, "webhooks.db"), {
    onDamaged: (aside) => options.notice?.(`the file of webhooks was damaged, and is at ${aside}; webhooks have to be made again`),
  });
  const woken = new Set<() => void>();
  const wake = () => {
    for (const each of woken) each();
  };
  const find = (word: string): WebhookRecord => {
    const found = store.all().filter(({ id, name }) => id === word || name === word);
    // Names are an owner's own; the machine's user means theirs first.
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
    async create(given, { as = everybody } = {}) {
      const request = parseRequest(CreateWebhook, given, "a webhook");
      checkUrl(request);
      const before = store.all();
      if (before.some(({ name, view: { owner } }) => name === request.name && owner === as.owner)) throw taken(request.name);
      const own = before.filter(({ view: { owner } }) => owner === as.owner).length;
      if (own >= WEBHOOKS_PER_OWNER_MAX) throw tooMany(`${as.owner} has ${own} webhooks already, as many as one owner may have`);
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
      if (!store.add(record)) throw taken(request.name);
      wake();
      return { ...view(record), secret: record.secret };
    },
    get: async (word) => view(find(word)),
    list: async () => store.all().map(view),
    async remove(word) {
      const record = find(word);
      const shown = view(record);
      store.remove(record.id);
      wake();
      return shown;
    },
    pause: async (word) => change(word, { paused: "it was paused" }),
    resume: async (word) => change(word, { paused: null }),
    async deliveries(word, given = {}) {
      const { state, limit } = parseRequest(ListDeliveries, given, "deliveries");
      const { id } = find(word);
      return store.deliveries(id, state, limit).map((each) => deliveryView(id, each));
    },
    async replay(word, given = {}) {
      const { delivery } = parseRequest(ReplayDeliveries, given, "a replay");
      const { id } = find(word);
      const asked =
        delivery === undefined ? store.deliveries(id, "dead", 1000) : [named(store.delivery(id, positionOf(delivery)), delivery)];
      for (const each of asked) store.keep(id, { ...each, state: "retrying", attempts: 1, nextAt: new Date(now()).toISOString() });
      wake();
      return { replayed: asked.length };
    },
    async test(word) {
      const record = find(word);
      const at = new Date(now()).toISOString();
      const body = cloudEvent({ of: { kind: "run", id: "none" }, seq: 1, type: "webhook.test", at, data: { webhook: record.name } });
      const { ok, status, error, durationMs } = await attempt(record, { id: `msg_${record.id}_test-${now()}`, body, post, now });
      return { ok, status, error, durationMs } satisfies Attempt;
    },
    deliver: (given) => deliverAll({ ...given, store, post, now, woken }),
    close: async () => store.close(),
  };
}

function checkUrl({ url, allowPrivate }: { url: string; allowPrivate: boolean }): void {
  const { protocol, username, password } = new URL(url);
  if (username !== "" || password !== "") {
    throw new CaissonError("invalid", "a webhook's address carries no name or password", {
      hint: "Its receiver knows a message by its signature.",
    });
  }
  if (protocol === "https:" || allowPrivate) return;
  throw new CaissonError("invalid", `${auditOrigin(url)} is not reached by https`, {
    hint: "Only a webhook that may reach private addresses can do without.",
  });
}

function taken(name: string): CaissonError {
  return new CaissonError("exists", `there is a webhook named ${name} already`, {
    hint: "Choose another name: `caisson webhook ls` lists them.",
  });
}

function positionOf(delivery: string): number {
  return Number(/_([0-9]{1,15})$/.exec(delivery)?.[1] ?? -1);
}

function named(delivery: Delivery | null, id: string): Delivery {
  if (delivery !== null) return delivery;
  throw new CaissonError("not_found", `the delivery ${JSON.stringify(id)} is not kept`, {
    hint: "`caisson webhook deliveries` lists those that are.",
  });
}

function deliveryView(webhook: string, { position, ...delivery }: Delivery): DeliveryView {
  // What was put down before sandboxes and driven things had events names none.
  return { id: `msg_${webhook}_${position}`, ...delivery, sandbox: delivery.sandbox ?? null, driven: delivery.driven ?? null };
}

function tooMany(what: string): CaissonError {
  return new CaissonError("busy", what, { hint: "Remove some: `caisson webhook rm`." });
}
