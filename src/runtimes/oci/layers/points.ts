import { existsSync, readdirSync } from "node:fs";
import { rename } from "node:fs/promises";
import { join } from "node:path";
import { CaissonError } from "../../../contract/error/error.ts";
import { ifErrnoSync, UNREACHABLE } from "../../../lib/failures.ts";
import type { MachinePoints, TakenPoint } from "../../../sandbox/machine-points.ts";
import type { SandboxRecord } from "../../../sandbox/store.ts";
import { detailsOf } from "../details.ts";
import { whileFrozen } from "../freeze.ts";
import { releaseLayer, shareLayerRange } from "../identity/id-ranges.ts";
import { removeFiles } from "../launch/launcher.ts";
import type { OciContext } from "../oci-context.ts";
import { copyTree, measure } from "./copy-tree.ts";
import { hasLayerDisk, makeDiskLike, removeLayerDisk } from "./disk.ts";
import { chainOf, dropHolder, duringLayerWork, needsParent, type ReferenceKind } from "./frozen-layers.ts";
import { liveDir } from "./live-tree.ts";
import {
  finishInterruptedRestore,
  finishRestore,
  isMachineUsing,
  keepPoint,
  keptPoints,
  readMachine,
  releaseMachine,
  removePoint,
  restorePoint,
  startFrom,
  takePoint,
} from "./machine.ts";
import { frozenParts, isOldCopy, lastingFolders, machineOfLayer, machineOfSandbox } from "./parts.ts";

const DRAFT_NAME = "upper-draft";

export function ociPoints(oci: OciContext): MachinePoints {
  const points = createPoints(oci);
  return {
    take: (...request) => duringLayerWork(oci, () => points.take(...request)),
    restore: (...request) => duringLayerWork(oci, () => points.restore(...request)),
    fork: (...request) => duringLayerWork(oci, () => points.fork(...request)),
    keep: (...request) => duringLayerWork(oci, () => points.keep(...request)),
    remove: (...request) => duringLayerWork(oci, () => points.remove(...request)),
    list: points.list,
  };
}

function createPoints(oci: OciContext): MachinePoints {
  return {
    async take(layer, { sandbox, bytesMax }) {
      await finishRestore(oci, layer);
      const take = () => takePoint(oci, machineOfLayer(layer), { bytesMax });
      const point = sandbox === undefined ? await take() : await whileFrozen(oci, sandbox, take);
      if (point.id !== null) await keepPoint(oci, layer, point.id);
      return point;
    },
    async restore(layer, point) {
      if (point === null || !isOldCopy(point)) return await restorePoint(oci, layer, point);
      await copyOld(oci, join(layer, point), join(layer, DRAFT_NAME));
      await restorePoint(oci, layer, null, DRAFT_NAME);
    },
    async fork(from, to, { point, bytesMax }) {
      shareLayerRange(oci, from, to);
      if (point !== undefined && isOldCopy(point)) return await forkOld(oci, join(from, point), to, bytesMax);
      await makeDiskLike(oci, from, to);
      if (point !== undefined) return await startFrom(oci, to, point);
      await finishRestore(oci, from);
      const { id } = await takePoint(oci, machineOfLayer(from), { bytesMax });
      await startFrom(oci, to, id);
    },
    keep: (layer, point) => keepPoint(oci, layer, point),
    async remove(layer, point) {
      if (isOldCopy(point)) await removeFiles(oci, existsSync(join(layer, point)) ? [join(layer, point)] : []);
      else await removePoint(oci, layer, point);
    },
    list: async (layer) => [...(await keptPoints(layer)), ...oldCopies(layer)],
  };
}

/** Stores what a sandbox has changed since its last point. */
export async function takeSandboxPoint(oci: OciContext, record: SandboxRecord, options: { bytesMax: number }): Promise<TakenPoint> {
  const machine = machineOfSandbox(oci.store.dir(record.id), record.spec, detailsOf(record));
  return await whileFrozen(oci, record.id, () => takePoint(oci, machine, options));
}

/** See `Runtime.layerFolders`. */
export async function workspaceFolders(oci: OciContext, layer: string, { point }: { point?: string } = {}): Promise<string[] | null> {
  if (point === undefined) {
    await finishInterruptedRestore(oci, layer);
    if (hasLayerDisk(layer)) return null;
    return [join(liveDir(layer), "upper"), ...frozenParts(oci, (await readMachine(layer)).base, "workspace")];
  }
  if (isOldCopy(point)) return [join(layer, point)];
  return frozenParts(oci, await chainOf(oci, point), "workspace");
}

/** Removes everything that sandboxes wrote to a layer, and its points. */
export async function removeLayer(oci: OciContext, layer: string): Promise<void> {
  await duringLayerWork(oci, async () => {
    await removeFiles(oci, lastingFolders(layer));
    removeLayerDisk(layer);
    await releaseMachine(oci, layer);
    await dropHolder(oci, layer, ["point", "last", "base"]);
    releaseLayer(oci, layer);
  });
}

/** Whether a frozen layer's reference is still in use; see `sweepLayers`. */
export function isReferenced(kind: ReferenceKind, holder: string, id: string): Promise<boolean> {
  if (kind === "point" || kind === "last" || kind === "base") return isMachineUsing(holder, kind, id);
  if (kind === "child") return Promise.resolve(needsParent(holder));
  return Promise.resolve(existsSync(holder));
}

function oldCopies(layer: string): string[] {
  return ifErrnoSync(() => readdirSync(layer), UNREACHABLE, []).filter(isOldCopy);
}

async function copyOld(oci: OciContext, copy: string, draft: string): Promise<void> {
  await removeFiles(oci, existsSync(draft) ? [draft] : []);
  await copyTree(oci, { from: copy, to: draft });
}

async function forkOld(oci: OciContext, copy: string, to: string, bytesMax: number): Promise<void> {
  // The layer was unwritten.
  if (!existsSync(copy)) return;
  const bytes = await measure(oci, [copy]);
  if (bytes > bytesMax)
    throw new CaissonError("too_large", `the workspace's changes take ${bytes} bytes; a copy may take up to ${bytesMax}`);
  await copyOld(oci, copy, join(to, DRAFT_NAME));
  await rename(join(to, DRAFT_NAME), join(to, "upper"));
}
