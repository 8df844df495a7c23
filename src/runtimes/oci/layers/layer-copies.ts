import { existsSync, readdirSync, renameSync } from "node:fs";
import { join } from "node:path";
import { CaissonError } from "../../../contract/error/error.ts";
import { shareLayerRange } from "../identity/id-ranges.ts";
import { removeFiles } from "../launch/launcher.ts";
import type { OciContext } from "../oci-context.ts";
import { hasLayerDisk } from "./disk.ts";
import { lastingFolders } from "./layers.ts";
import { copyTree, measure } from "./snapshot.ts";

/** Copies are stored next to a layer's own folders, so that each can be renamed regardless of who owns its files. */
const COPY_PREFIX = "copy-";
const placesOf = (layer: string) => ({
  ...lastingFolders(layer),
  draft: join(layer, "upper-draft"),
  next: join(layer, "upper-next"),
  old: join(layer, "upper-old"),
});
const copyOf = (layer: string, name: string) => join(layer, `${COPY_PREFIX}${name}`);

/** See `Runtime.copyLayer`. */
export async function copyLayer(oci: OciContext, layer: string, copy: { name: string; bytesMax: number }): Promise<void> {
  if (hasLayerDisk(layer)) throw new CaissonError("unsupported", "the workspace is on a separate disk, which cannot be copied");
  finishRestore(layer);
  const { upper, draft } = placesOf(layer);
  await removeThere(oci, [draft]);
  // Without a folder, the layer is unwritten, and having no copy is correct.
  if (!existsSync(upper)) return;
  const bytes = await measure(oci, [upper]);
  if (bytes > copy.bytesMax)
    throw new CaissonError("too_large", `the workspace's changes take ${bytes} bytes; a copy may take up to ${copy.bytesMax}`);
  await copyTree(oci, { from: upper, to: draft });
  renameSync(draft, copyOf(layer, copy.name));
}

/** See `Runtime.restoreLayer`. The copy replaces the layer by a rename, after it is complete. */
export async function restoreLayer(oci: OciContext, layer: string, name: string | null): Promise<void> {
  if (hasLayerDisk(layer)) throw new CaissonError("unsupported", "the workspace is on a separate disk, which cannot be copied");
  finishRestore(layer);
  const { upper, work, draft, next, old } = placesOf(layer);
  await removeThere(oci, [draft, next, old]);
  const copy = name === null ? null : copyOf(layer, name);
  if (copy !== null && existsSync(copy)) {
    await copyTree(oci, { from: copy, to: draft });
    renameSync(draft, next);
  }
  if (existsSync(upper)) renameSync(upper, old);
  finishRestore(layer);
  await removeThere(oci, [old, work]);
}

/** See `Runtime.forkLayer`. */
export async function forkLayer(oci: OciContext, from: string, to: string, { copy, bytesMax }: ForkedLayer): Promise<void> {
  if (hasLayerDisk(from)) throw new CaissonError("unsupported", "the workspace is on a separate disk, which cannot be copied");
  if (copy === undefined) finishRestore(from);
  const source = copy === undefined ? placesOf(from).upper : copyOf(from, copy);
  // The layer was unwritten.
  if (!existsSync(source)) return;
  const bytes = await measure(oci, [source]);
  if (bytes > bytesMax)
    throw new CaissonError("too_large", `the workspace's changes take ${bytes} bytes; a copy may take up to ${bytesMax}`);
  shareLayerRange(oci, from, to);
  const { upper, draft } = placesOf(to);
  await copyTree(oci, { from: source, to: draft });
  renameSync(draft, upper);
}

interface ForkedLayer {
  copy?: string;
  bytesMax: number;
}

export async function removeLayerCopy(oci: OciContext, layer: string, name: string): Promise<void> {
  await removeThere(oci, [copyOf(layer, name)]);
}

/** Returns all folders of a layer that sandboxes wrote, and all copies. */
export function foldersOfLayer(layer: string): string[] {
  const known = Object.values(placesOf(layer)).filter((path) => existsSync(path));
  const copies = existsSync(layer) ? readdirSync(layer).filter((name) => name.startsWith(COPY_PREFIX)) : [];
  return [...known, ...copies.map((name) => join(layer, name))];
}

/** Completes a restore whose process died: its files are complete, and only lack their final name. */
export function finishRestore(layer: string): void {
  const { upper, next } = placesOf(layer);
  if (!existsSync(upper) && existsSync(next)) renameSync(next, upper);
}

async function removeThere(oci: OciContext, paths: readonly string[]): Promise<void> {
  await removeFiles(
    oci,
    paths.filter((path) => existsSync(path)),
  );
}
