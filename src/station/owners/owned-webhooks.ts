import { auditOrigin } from "../../contract/audit-text.ts";
import type { OwnerView } from "../../contract/owner.ts";
import type { WebhookView } from "../../contract/webhook-verbs.ts";
import type { Station } from "../station.ts";
import { noSuchWebhook } from "../webhooks/no-such-webhook.ts";
import type { WebhookVerbs } from "../webhooks/verbs.ts";
import { decide } from "./decide.ts";

export function ownedWebhooks({ webhooks }: Pick<Station, "webhooks">, { owner, sees }: OwnerView): WebhookVerbs {
  const list: WebhookVerbs["list"] = async () => {
    const all = await webhooks.list();
    return (sees === "everything" ? all : all.filter((webhook) => webhook.owner === owner)).map(shown);
  };
  /** The path and query of an address are often its receiver's password: they are its owner's alone. */
  const shown = (webhook: WebhookView): WebhookView =>
    webhook.owner === owner ? webhook : { ...webhook, url: `${auditOrigin(webhook.url)}/…` };
  /** By its id from here on. Who sees everything means their own by a name that several have. */
  const find = async (word: string): Promise<string> => {
    const found = (await list()).filter(({ id, name }) => id === word || name === word);
    const chosen = found.find((webhook) => webhook.owner === owner) ?? found[0];
    if (chosen === undefined) throw noSuchWebhook(word);
    return chosen.id;
  };
  return decide(webhooks, {
    create: async (request) => await webhooks.create(request, { as: { owner, sees } }),
    get: async (webhook) => shown(await webhooks.get(await find(webhook))),
    list,
    remove: async (webhook) => shown(await webhooks.remove(await find(webhook))),
    pause: async (webhook) => shown(await webhooks.pause(await find(webhook))),
    resume: async (webhook) => shown(await webhooks.resume(await find(webhook))),
    deliveries: async (webhook, options) => await webhooks.deliveries(await find(webhook), options),
    replay: async (webhook, options) => await webhooks.replay(await find(webhook), options),
    test: async (webhook) => await webhooks.test(await find(webhook)),
  });
}
