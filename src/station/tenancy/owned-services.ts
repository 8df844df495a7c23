import { auditOrigin } from "../../contract/audit/audit-text.ts";
import type { HealthView } from "../../contract/health/health.ts";
import { SandboxId } from "../../contract/ids.ts";
import { noSuchPreview } from "../../contract/network/no-such-preview.ts";
import type { OwnerView } from "../../contract/token/owner.ts";
import { noSuchUpload } from "../../contract/upload/no-such-upload.ts";
import { noSuchWebhook } from "../../contract/webhook/no-such-webhook.ts";
import type { WebhookView } from "../../contract/webhook/webhook-verbs.ts";
import type { Station } from "../../verbs/station.ts";
import { oneOf } from "../names/one-of.ts";
import { isThere } from "./own-things.ts";
import { isOthers, type OwnLookups, type OwnView, ownedGroup } from "./owned-group.ts";

/** The guardian's settings belong to the station; its findings and actions belong to the owners of the runs. */
export function ownedGuardian(station: Station, view: OwnView): Station["guardian"] {
  const { guardian } = station;
  const { owner, sees, own } = view;
  return ownedGroup("guardian", station, view, {
    async status() {
      const status = await guardian.status();
      return sees === "everything" ? status : { ...status, runs: status.runs.filter((run) => run.owner === owner) };
    },
    async log({ run, ...options } = {}) {
      const found = run === undefined ? {} : { run: await own.run(run) };
      return await guardian.log({ ...options, ...found, ...(sees === "own" && { owner }) });
    },
  });
}

/**
 * Everyone sees the station's own health. The health and the incidents of a sandbox or run belong to its owner, even
 * after it is removed.
 */
export function ownedHealth(station: Station, view: OwnView): Station["health"] {
  const { health } = station;
  const { owner, sees, own } = view;
  if (sees === "everything") return health;
  const isOwn = async ({ subject, run }: HealthView): Promise<boolean> => {
    if (subject.kind === "station") return true;
    return await isThere(run === null ? own.sandbox(subject.id) : own.run(run));
  };
  const incidents = async () => (await health.incidents()).filter((incident) => incident.owner === owner);
  return ownedGroup("health", station, view, {
    async list() {
      const { watched, subjects } = await health.list();
      const judged = await Promise.all(subjects.map(async (each) => ((await isOwn(each)) ? [each] : [])));
      return { watched, subjects: judged.flat() };
    },
    incidents,
    async incident(id) {
      const found = (await incidents()).filter((each) => each.id.startsWith(id));
      return await health.incident(oneOf(id, found, { what: "incident", listedBy: "caisson incident ls" }));
    },
  });
}

export function ownedNetworks(station: Station, view: OwnView): Station["networks"] {
  const { networks } = station;
  const { sees, own } = view;
  const previews = async () => {
    const all = await networks.previews();
    if (sees === "everything") return all;
    const judged = await Promise.all(all.map(async (preview) => ((await isThere(own.sandbox(preview.sandbox))) ? [preview] : [])));
    return judged.flat();
  };
  return ownedGroup("networks", station, view, {
    previews,
    async closePreview(id) {
      if (!(await previews()).some((preview) => preview.id === id)) throw noSuchPreview(id);
      await networks.closePreview(id);
    },
  });
}

export function ownedSecrets(station: Station, view: OwnView): Station["secrets"] {
  const { secrets } = station;
  const { owner, sees } = view;
  const whose = (options: { owner?: string }) => ({ owner: sees === "everything" ? (options.owner ?? owner) : owner });
  return ownedGroup("secrets", station, view, {
    set: async (name, request, options = {}) => await secrets.set(name, request, whose(options)),
    async list(options = {}) {
      if (sees === "everything") return await secrets.list(options);
      return isOthers(options, owner) ? [] : await secrets.list({ owner });
    },
    remove: async (name, options = {}) => await secrets.remove(name, whose(options)),
  });
}

export function ownedUploads(station: Station, view: OwnView): Station["uploads"] {
  const { uploads } = station;
  const { owner, sees } = view;
  return ownedGroup("uploads", station, view, {
    put: async (archive, options = {}) => await uploads.put(archive, { ...options, owner }),
    list: async (options) => (await uploads.list(options)).filter((upload) => sees === "everything" || upload.owner === owner),
  });
}

export function ownedInside(station: Station, view: OwnView): Station["inside"] {
  const { inside } = station;
  const { own, owner, sees } = view;
  /** A removed sandbox can still be found by its complete id. */
  const find = async (word: string) => (SandboxId.safeParse(word).success ? word : await own.sandbox(word));
  const whose = sees === "own" ? { owner } : {};
  return ownedGroup("inside", station, view, {
    events: async (sandbox, options) => await inside.events(await find(sandbox), { ...options, ...whose }),
    async *follow(sandbox, options) {
      yield* inside.follow(await find(sandbox), { ...options, ...whose });
    },
  });
}

export function ownedWebhooks(station: Pick<Station, "webhooks">, view: OwnView): Station["webhooks"] {
  const { webhooks } = station;
  const { owner, sees, own } = view;
  const toOwnView = hideAddress(owner);
  return ownedGroup("webhooks", station, view, {
    create: async (request) => await webhooks.create(request, { as: { owner, sees } }),
    get: async (webhook) => toOwnView(await webhooks.get(await own.webhook(webhook))),
    list: async () => await listWebhooks(station, view),
    remove: async (webhook) => toOwnView(await webhooks.remove(await own.webhook(webhook))),
    pause: async (webhook) => toOwnView(await webhooks.pause(await own.webhook(webhook))),
    resume: async (webhook) => toOwnView(await webhooks.resume(await own.webhook(webhook))),
  });
}

/**
 * Hides the path and query of a URL from everyone but its owner, because they often contain the receiver's password.
 */
const hideAddress =
  (owner: string) =>
  (webhook: WebhookView): WebhookView =>
    webhook.owner === owner ? webhook : { ...webhook, url: `${auditOrigin(webhook.url)}/…` };

async function listWebhooks({ webhooks }: Pick<Station, "webhooks">, { owner, sees }: OwnerView): Promise<WebhookView[]> {
  const all = await webhooks.list();
  return (sees === "everything" ? all : all.filter((webhook) => webhook.owner === owner)).map(hideAddress(owner));
}

export function serviceLookups(station: Pick<Station, "webhooks" | "uploads">, view: OwnerView): Pick<OwnLookups, "webhook" | "upload"> {
  const { owner, sees } = view;
  return {
    /** For a caller who sees everything, their own webhook takes precedence if several have the name. */
    async webhook(word) {
      const found = (await listWebhooks(station, view)).filter(({ id, name }) => id === word || name === word);
      const chosen = found.find((webhook) => webhook.owner === owner) ?? found[0];
      if (chosen === undefined) throw noSuchWebhook(word);
      return chosen.id;
    },
    async upload(id) {
      if (sees === "own" && (await station.uploads.get(id)).owner !== owner) throw noSuchUpload(id);
      return id;
    },
  };
}
