import { CaissonError } from "../../../contract/error/error.ts";
import type { SnapshotId } from "../../../contract/ids.ts";
import type { SandboxRecord } from "../../../sandbox/store.ts";
import type { OciDetails } from "../details.ts";
import { removeFiles } from "../launch/launcher.ts";
import type { OciContext } from "../oci-context.ts";
import { bytesOf, chainOf, dropLayer, duringLayerWork, holdLayer } from "./frozen-layers.ts";
import type { MountedLayer } from "./mounted-layer.ts";
import { withBase } from "./parts.ts";
import { takeSandboxPoint } from "./points.ts";
import { makeSnapshotDraft, newSnapshotId, publishSnapshot, snapshotDir } from "./snapshot-store.ts";

export interface SnapshotRequest {
  record: SandboxRecord;
  details: OciDetails;
  name?: string | undefined;
  /** Whether the snapshot is for a fork. */
  hidden: boolean;
}

/**
 * Stores what a sandbox has changed, while it is frozen. A second snapshot of the same sandbox stores only what changed
 * since the first. Throws `unsupported`, `no_space`, `busy`.
 */
export async function takeSnapshot(oci: OciContext, request: SnapshotRequest): Promise<SnapshotId> {
  refuse(request.record);
  return await duringLayerWork(oci, () => storeSnapshot(oci, request));
}

async function storeSnapshot(oci: OciContext, request: SnapshotRequest): Promise<SnapshotId> {
  const { record, details } = request;
  const id = newSnapshotId();
  const draft = await makeSnapshotDraft(oci, id);
  const dir = snapshotDir(oci, id);
  let layers: MountedLayer[] = [];
  try {
    const { id: point } = await takeSandboxPoint(oci, record, { bytesMax: Number.MAX_SAFE_INTEGER });
    const own = await chainOf(oci, point);
    layers = [...own, ...details.templateLayers];
    for (const layer of layers) await holdLayer(oci, layer.id, { kind: "snapshot", holder: dir });
    await publishSnapshot(oci, draft, {
      id,
      name: request.name ?? null,
      sandbox: record.id,
      createdAt: new Date().toISOString(),
      bytes: await bytesOf(oci, layers),
      // The layers below the sandbox's own are part of the chain.
      basis: withBase(oci, { ...details, base: own }),
      layers,
      spec: record.spec,
      hiddenFor: request.hidden ? oci.store.thisProcess() : null,
    });
    return id;
  } catch (error) {
    for (const layer of layers) await dropLayer(oci, layer.id, { kind: "snapshot", holder: dir });
    await removeFiles(oci, [draft]);
    throw error;
  }
}

function refuse(record: SandboxRecord): void {
  const { workspace } = record.spec;
  if (workspace.kind === "folder" && workspace.access === "rw") {
    throw new CaissonError("unsupported", `the workspace of sandbox ${record.id} is a host folder, which a snapshot cannot freeze`, {
      hint: "Use an overlay workspace (`:overlay`), which keeps all changes in the sandbox.",
    });
  }
}
