import { existsSync, readdirSync, renameSync } from "node:fs";
import { join } from "node:path";
import { CaissonError } from "../../../contract/error.ts";
import { shareLayerRange } from "../identity/id-ranges.ts";
import { removeFiles } from "../launch/launcher.ts";
import type { OciContext } from "../oci-context.ts";
import { hasLayerDisk } from "./disk.ts";
import { lastingFolders } from "./layers.ts";
import { copyTree, measure } from "./snapshot.ts";

/** Beside a layer's own folders, so that every one of them can take another's name whoever owns its files. */
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
  if (hasLayerDisk(layer)) throw new CaissonError("unsupported", "the workspace is on a disk of its own, of which no copy is kept");
  finishRestore(layer);
  const { upper, draft } = placesOf(layer);
  await removeThere(oci, [draft]);
  // Nobody has written to it yet: then there is no folder, and no copy is the right one.
  if (!existsSync(upper)) return;
  const bytes = await measure(oci, [upper]);
  if (bytes > copy.bytesMax)
    throw new CaissonError("too_large", `the workspace's changes take ${bytes} bytes; a copy is kept of up to ${copy.bytesMax}`);
  await copyTree(oci, { from: upper, to: draft });
  renameSync(draft, copyOf(layer, copy.name));
}

/** See `Runtime.restoreLayer`: the copy takes the layer's place by its name alone, when it is whole. */
export async function restoreLayer(oci: OciContext, layer: string, name: string | null): Promise<void> {
  if (hasLayerDisk(layer)) throw new CaissonError("unsupported", "the workspace is on a disk of its own, of which no copy is kept");
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
  if (hasLayerDisk(from)) throw new CaissonError("unsupported", "the workspace is on a disk of its own, of which no copy is made");
  if (copy === undefined) finishRestore(from);
  const source = copy === undefined ? placesOf(from).upper : copyOf(from, copy);
  // Nobody had written to it.
  if (!existsSync(source)) return;
  const bytes = await measure(oci, [source]);
  if (bytes > bytesMax)
    throw new CaissonError("too_large", `the workspace's changes take ${bytes} bytes; a copy is made of up to ${bytesMax}`);
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

/** Everything of a layer that sandboxes wrote, or that was copied of it. */
export function foldersOfLayer(layer: string): string[] {
  const known = Object.values(placesOf(layer)).filter((path) => existsSync(path));
  const copies = existsSync(layer) ? readdirSync(layer).filter((name) => name.startsWith(COPY_PREFIX)) : [];
  return [...known, ...copies.map((name) => join(layer, name))];
}

/** What was to be restored when its process died is there, whole, and only has not got its name. */
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
