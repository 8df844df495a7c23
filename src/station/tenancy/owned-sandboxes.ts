import { refuseStationLabels } from "../../contract/label/change-labels.ts";
import type { CreateSandbox } from "../../contract/sandbox/sandbox-verbs.ts";
import type { Station } from "../../verbs/station.ts";
import { isOthers, type OwnView, ownedGroup } from "./owned-group.ts";

export function ownedSandboxes(station: Pick<Station, "sandboxes">, view: OwnView): Station["sandboxes"] {
  const { sandboxes } = station;
  const { owner, sees } = view;
  return ownedGroup("sandboxes", station, view, {
    create: async (request, options = {}) => await sandboxes.create(await resolveOwnReferences(request, view), { ...options, owner }),
    async list(options = {}) {
      if (sees === "everything") return await sandboxes.list(options);
      if (isOthers(options, owner)) return { sandboxes: [], damaged: [], next: null };
      // The owner of a damaged sandbox is unknown.
      return { ...(await sandboxes.list({ ...options, owner })), damaged: [] };
    },
    async snapshots(options = {}) {
      if (sees === "everything") return await sandboxes.snapshots(options);
      return isOthers(options, owner) ? { snapshots: [], next: null } : await sandboxes.snapshots({ ...options, owner });
    },
  });
}

async function resolveOwnReferences(request: CreateSandbox, { sees, own }: OwnView): Promise<CreateSandbox> {
  const { snapshot, spec: config } = request;
  if (sees === "own") refuseStationLabels("sandbox", config.labels);
  if (config.template.kind === "snapshot") await own.snapshot(config.template.id);
  return snapshot === undefined ? request : { ...request, snapshot: await own.snapshot(snapshot) };
}
