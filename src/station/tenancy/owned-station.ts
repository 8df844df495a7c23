import { LOCAL_OWNER, type OwnerView } from "../../contract/token/owner.ts";
import type { Station } from "../../verbs/station.ts";
import { createInbox } from "../inbox/create-inbox.ts";
import { resolveId } from "../names/resolve-id.ts";
import { ownThings } from "./own-things.ts";
import { type OwnView, ownedGroup } from "./owned-group.ts";
import { jobLookups, ownedJobs } from "./owned-jobs.ts";
import { ownedRuns } from "./owned-runs.ts";
import { ownedSandboxes } from "./owned-sandboxes.ts";
import {
  ownedGuardian,
  ownedHealth,
  ownedInside,
  ownedNetworks,
  ownedSecrets,
  ownedUploads,
  ownedWebhooks,
  serviceLookups,
} from "./owned-services.ts";
import { ownedSessions } from "./owned-sessions.ts";
import { ownedTemplates } from "./owned-templates.ts";

/**
 * Returns the station as one owner sees it (ADR 30): the owner owns everything that they create through it, and other
 * owners' things fail like things that do not exist, by id, id prefix and name. The machine's own user gets the station
 * itself. Disposing a view does not end the station.
 */
export function ownedStation(station: Station, owner: OwnerView): Station {
  const own = { ...ownThings(station, owner), ...jobLookups(station, owner), ...serviceLookups(station, owner) };
  const view: OwnView = { ...owner, own };
  const webhooks = ownedWebhooks(station, view);
  if (view.owner === LOCAL_OWNER && view.sees === "everything") return { ...station, webhooks };
  const runs = ownedRuns(station, view);
  const sandboxes = ownedSandboxes(station, view);
  const sessions = ownedSessions(station, view);
  const jobs = ownedJobs(station, view);
  const health = ownedHealth(station, view);
  return {
    ...jobs,
    runs,
    sandboxes,
    sessions,
    webhooks,
    health,
    networks: ownedNetworks(station, view),
    secrets: ownedSecrets(station, view),
    uploads: ownedUploads(station, view),
    inside: ownedInside(station, view),
    guardian: ownedGuardian(station, view),
    inbox: createInbox({ ...jobs, runs, health, sandboxes }),
    agents: ownedGroup("agents", station, view, {}),
    images: ownedGroup("images", station, view, {}),
    templates: ownedTemplates(station, view),
    machine: ownedGroup("machine", station, view, { find: async (word) => await resolveId(word, { runs, sandboxes, sessions }) }),
    tokens: ownedGroup("tokens", station, view, {}),
    audit: ownedGroup("audit", station, view, {}),
    async [Symbol.asyncDispose]() {},
  };
}
