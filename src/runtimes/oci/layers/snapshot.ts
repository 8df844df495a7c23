import { join } from "node:path";
import { CaissonError } from "../../../contract/error/error.ts";
import type { SnapshotId } from "../../../contract/ids.ts";
import type { TakenPoint } from "../../../sandbox/machine-points.ts";
import type { SandboxRecord } from "../../../sandbox/store.ts";
import type { OciDetails } from "../details.ts";
import { removeFiles } from "../launch/launcher.ts";
import { bytesOfImage, continueProcesses, dumpMemory } from "../memory/memory-image.ts";
import { MEMORY_NAME } from "../memory/snapshot-memory.ts";
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
  /** Whether to store the processes too. */
  memory: boolean;
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
    const take = () => takeSandboxPoint(oci, record, { bytesMax: Number.MAX_SAFE_INTEGER });
    const { point, image } = await (request.memory ? withMemory(oci, details, join(draft, MEMORY_NAME), take) : withoutMemory(take));
    const own = await chainOf(oci, point);
    layers = [...own, ...details.templateLayers];
    for (const layer of layers) await holdLayer(oci, layer.id, { kind: "snapshot", holder: dir });
    await publishSnapshot(oci, draft, {
      id,
      name: request.name ?? null,
      sandbox: record.id,
      createdAt: new Date().toISOString(),
      bytes: (await bytesOf(oci, layers)) + (image === null ? 0 : await bytesOfImage(image)),
      // The layers below the sandbox's own are part of the chain.
      basis: withBase(oci, { ...details, base: own }),
      layers,
      socket: image?.socket ?? null,
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

type Take = () => Promise<TakenPoint>;

const withoutMemory = async (take: Take) => ({ point: (await take()).id, image: null });

/** Stores processes and files as they were at the same moment. */
async function withMemory(oci: OciContext, details: OciDetails, dir: string, take: Take) {
  try {
    const image = await dumpMemory(oci, details, dir);
    return { point: (await take()).id, image };
  } finally {
    continueProcesses(details);
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
