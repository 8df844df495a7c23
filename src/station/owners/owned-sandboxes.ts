import { refuseStationLabels } from "../../contract/change-labels.ts";
import type { OwnerView } from "../../contract/owner.ts";
import type { CreateSandbox } from "../../contract/sandbox-verbs.ts";
import type { SandboxVerbs } from "../sandboxes/verbs.ts";
import type { Station } from "../station.ts";
import { decide } from "./decide.ts";
import type { OwnThings } from "./own-things.ts";
import { isOthers } from "./owned-runs.ts";

export function ownedSandboxes({ sandboxes }: Pick<Station, "sandboxes">, view: OwnerView & { own: OwnThings }): SandboxVerbs {
  const { owner, sees, own } = view;
  return decide(sandboxes, {
    create: async (request, options = {}) => await sandboxes.create(await withOwnParts(request, view), { ...options, owner }),
    hold: async (id, options) => await sandboxes.hold(await own.sandbox(id), options),
    get: async (id) => await sandboxes.get(await own.sandbox(id)),
    async list(options = {}) {
      if (sees === "everything") return await sandboxes.list(options);
      if (isOthers(options, owner)) return { sandboxes: [], damaged: [], next: null };
      // The owner of a damaged one is unknown.
      return { ...(await sandboxes.list({ ...options, owner })), damaged: [] };
    },
    changedFiles: async (id) => await sandboxes.changedFiles(await own.sandbox(id)),
    label: async (id, changes) => await sandboxes.label(await own.sandbox(id), changes),
    stats: async (id) => await sandboxes.stats(await own.sandbox(id)),
    pause: async (id) => await sandboxes.pause(await own.sandbox(id)),
    resume: async (id) => await sandboxes.resume(await own.sandbox(id)),
    snapshot: async (id, options) => await sandboxes.snapshot(await own.sandbox(id), options),
    fork: async (id) => await sandboxes.fork(await own.sandbox(id)),
    remove: async (id) => await sandboxes.remove(await own.sandbox(id)),
    // What the dead left is nobody's.
    sweep: "shared",
    async snapshots(options = {}) {
      if (sees === "everything") return await sandboxes.snapshots(options);
      return isOthers(options, owner) ? { snapshots: [], next: null } : await sandboxes.snapshots({ ...options, owner });
    },
    removeSnapshot: async (id) => await sandboxes.removeSnapshot(await own.snapshot(id)),
  });
}

async function withOwnParts(request: CreateSandbox, { sees, own }: OwnerView & { own: OwnThings }): Promise<CreateSandbox> {
  const { snapshot, spec } = request;
  if (sees === "own") refuseStationLabels("sandbox", spec.labels);
  if (spec.template.kind === "snapshot") await own.snapshot(spec.template.id);
  return snapshot === undefined ? request : { ...request, snapshot: await own.snapshot(snapshot) };
}
