import { existsSync } from "node:fs";
import { join } from "node:path";
import { CaissonError } from "../../../contract/error/error.ts";
import type { SandboxConfig } from "../../../contract/sandbox/sandbox.ts";
import type { SandboxRecord } from "../../../sandbox/store.ts";
import type { Basis, OciDetails } from "../details.ts";
import { layerRange } from "../identity/id-ranges.ts";
import type { PlanRecord } from "../launch/launcher.ts";
import type { OciContext } from "../oci-context.ts";
import { hasLayerDisk, liveDisk } from "./disk.ts";
import { chainOf, dropLayer, frozenDir, holdLayer } from "./frozen-layers.ts";
import { layerOf } from "./layer-of.ts";
import type { StoredLayer } from "./layers.ts";
import { liveDir } from "./live-tree.ts";
import { finishInterruptedRestore, finishRestore, readMachine } from "./machine.ts";
import type { MountedLayer } from "./mounted-layer.ts";
import { bindName, frozenParts, isOldCopy, liveUpper, machineOfLayer, onLayerDisk } from "./parts.ts";

/** The view of a session's files as they are now. */
export const NOW = "now";

/** Returns the layer that a sandbox only shows, and which of its states. */
function viewOf({ workspace }: Pick<SandboxConfig, "workspace">): { layer: string; at: string } | null {
  if (workspace.kind !== "folder" || workspace.layer === undefined || workspace.view === undefined) return null;
  return { layer: workspace.layer, at: workspace.view };
}

/** Completes what an interrupted restore left in the session that a sandbox works in or shows. */
export async function finishRestoreFor(oci: OciContext, config: SandboxConfig): Promise<void> {
  const layer = layerOf(config);
  if (layer !== undefined) await finishRestore(oci, layer);
  const view = viewOf(config);
  if (view?.at === NOW) await finishInterruptedRestore(oci, view.layer);
}

/** Returns the frozen layers below a new sandbox's own. */
export async function baseOf(oci: OciContext, config: SandboxConfig): Promise<MountedLayer[]> {
  const view = viewOf(config);
  if (view !== null && view.at !== NOW) return isOldCopy(view.at) ? [] : await chainOf(oci, view.at);
  const layer = view?.layer ?? layerOf(config);
  const base = layer === undefined ? [] : (await readMachine(layer)).base;
  for (const { id } of base) {
    if (existsSync(frozenDir(oci, id))) continue;
    throw new CaissonError("gone", `files of this session are missing: ${frozenDir(oci, id)} does not exist`, {
      hint: "Restore the folder from a backup, or start another session.",
    });
  }
  return base;
}

/**
 * Keeps the frozen layers of a sandbox that started from a snapshot, or that shows a session's files: both may be
 * removed meanwhile. A session holds its own.
 */
export async function holdBase(oci: OciContext, { id, spec }: SandboxRecord, details: Layers): Promise<void> {
  for (const layer of heldBy(spec, details)) await holdLayer(oci, layer.id, { kind: "sandbox", holder: oci.store.dir(id) });
}

/** Releases what `holdBase` held. */
export async function releaseBase(oci: OciContext, { id, spec }: SandboxRecord, details: Layers): Promise<void> {
  for (const layer of heldBy(spec, details)) await dropLayer(oci, layer.id, { kind: "sandbox", holder: oci.store.dir(id) });
}

type Layers = Pick<OciDetails, "base" | "templateLayers">;

function heldBy(config: SandboxConfig, { base, templateLayers }: Layers): MountedLayer[] {
  return [...(layerOf(config) === undefined ? base : []), ...templateLayers];
}

/**
 * Returns the session's writable layer of the workspace if a sandbox shows the session's current files, or an earlier
 * version's copy of it.
 */
export function viewedLayers(oci: OciContext, config: SandboxConfig): StoredLayer[] {
  const view = viewOf(config);
  if (view === null || (view.at !== NOW && !isOldCopy(view.at))) return [];
  if (viewedDisk(config).length > 0) return [{ dir: liveUpper(onLayerDisk("workspace").upper), firstId: layerRange(oci, view.layer) }];
  const upper = view.at === NOW ? join(liveDir(view.layer), "upper") : join(view.layer, view.at);
  return existsSync(upper) ? [upper] : [];
}

/** Returns the record that makes a session's disk readable, if the sandbox shows the current files on it. */
export function viewedDisk(config: SandboxConfig): PlanRecord[] {
  const view = viewOf(config);
  return view?.at === NOW && hasLayerDisk(view.layer) ? [liveDisk(view.layer)] : [];
}

/**
 * Returns a basis in which every bind that the session's machine has changed is writable: otherwise what root installed
 * in one turn would be missing in a turn without root.
 */
export function withLastingBinds(
  oci: OciContext,
  basis: Basis,
  { config, base }: { config: SandboxConfig; base: readonly MountedLayer[] },
): Basis {
  const layer = layerOf(config);
  const written = new Set(layer === undefined ? [] : machineOfLayer(layer).parts.map(({ name }) => name));
  const isChanged = (name: string) => written.has(name) || frozenParts(oci, base, name).length > 0;
  const binds = basis.root.binds.map((bind) => (bind.kind === "folder" && isChanged(bindName(bind)) ? { ...bind, writable: true } : bind));
  return { ...basis, root: { ...basis.root, binds } };
}
