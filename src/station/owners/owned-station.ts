import { LOCAL_OWNER, type OwnerView } from "../../contract/owner.ts";
import { createInbox } from "../inbox/create-inbox.ts";
import { findThing } from "../machine/find-thing.ts";
import type { Station } from "../station.ts";
import { decide } from "./decide.ts";
import { ownThings } from "./own-things.ts";
import { ownedGuardian } from "./owned-guardian.ts";
import { ownedHealth } from "./owned-health.ts";
import { ownedInside } from "./owned-inside.ts";
import { ownedMerges } from "./owned-merges.ts";
import { ownedNetworks } from "./owned-networks.ts";
import { ownedRuns } from "./owned-runs.ts";
import { ownedSandboxes } from "./owned-sandboxes.ts";
import { ownedSecrets } from "./owned-secrets.ts";
import { ownedSessions } from "./owned-sessions.ts";
import { ownedShips } from "./owned-ships.ts";
import { ownedSpecs } from "./owned-specs.ts";
import { ownedUploads } from "./owned-uploads.ts";
import { ownedWebhooks } from "./owned-webhooks.ts";
import { ownedWorkflows } from "./owned-workflows.ts";

/**
 * A station as one owner sees it (ADR 30): what is made through it is theirs, and what belongs to others answers like
 * what does not exist, by id, by the beginning of one and by name. The station itself is what the machine's own user
 * sees. It does not end with a view of it.
 */
export function ownedStation(station: Station, view: OwnerView): Station {
  if (view.owner === LOCAL_OWNER && view.sees === "everything") return { ...station, webhooks: ownedWebhooks(station, view) };
  const { machine, agents, images, tokens, audit } = station;
  const own = ownThings(station, view);
  const forAll = view.sees === "own" ? "refused" : "shared";
  const runs = ownedRuns(station, { ...view, own });
  const sandboxes = ownedSandboxes(station, { ...view, own });
  const sessions = ownedSessions(station, { ...view, own });
  const specs = ownedSpecs(station, view);
  const ships = ownedShips(station, { ...view, own, specs });
  const merges = ownedMerges(station, { ...view, own });
  const workflows = ownedWorkflows(station, view);
  const health = ownedHealth(station, { ...view, own });
  return {
    runs,
    sandboxes,
    sessions,
    networks: ownedNetworks(station, { ...view, own }),
    secrets: ownedSecrets(station, view),
    uploads: ownedUploads(station, view),
    inside: ownedInside(station, { ...view, own }),
    webhooks: ownedWebhooks(station, view),
    specs,
    ships,
    merges,
    workflows,
    inbox: createInbox({ runs, specs, ships, merges, workflows, health, sandboxes }),
    health,
    guardian: ownedGuardian(station, { ...view, own }),
    agents: decide(agents, {
      list: "shared",
      show: "shared",
      validate: "shared",
      filesAt: "shared",
      judge: "shared",
      trust: forAll,
      trusted: "shared",
      revoke: forAll,
    }),
    images: decide(images, { build: forAll, list: "shared", remove: forAll }),
    machine: decide(machine, {
      doctor: "shared",
      choose: "shared",
      models: "shared",
      attack: "shared",
      conformance: "shared",
      stats: "shared",
      usage: "shared",
      prune: forAll,
      backup: forAll,
      restore: forAll,
      find: async (word) => await findThing(word, { runs, sandboxes, sessions }),
    }),
    tokens: decide(tokens, { create: forAll, list: forAll, revoke: forAll, rotate: forAll }),
    audit: decide(audit, { list: forAll }),
    async [Symbol.asyncDispose]() {},
  };
}
