import { createHash } from "node:crypto";
import { existsSync } from "node:fs";
import { mkdir, readdir, readFile, rename, rm, rmdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { z } from "zod";
import { CaissonError } from "../../../contract/error/error.ts";
import { ProcessIdentity } from "../../../contract/process-identity.ts";
import { ABSENT, ifErrno, isErrno, jsonOrNull } from "../../../lib/failures.ts";
import { newId } from "../../../lib/new-id.ts";
import { isRunning } from "../../../sandbox/process-identity.ts";
import { removeFiles } from "../launch/launcher.ts";
import type { OciContext } from "../oci-context.ts";
import { isSubvolume } from "./live-tree.ts";
import type { MountedLayer } from "./mounted-layer.ts";

/**
 * The layer store: layers that are never written again. Each contains a folder for every part of a machine that it
 * changes (root, home, workspace …), or a subvolume with all of them. It names the layer below it. What uses
 * a layer has a reference in its folder; a layer without references is removed.
 */
export const FrozenLayer = z.object({
  id: z.string().regex(/^ly_[a-z2-7]{12}$/),
  /** The layer below, or null for the lowest one. */
  parent: z.string().nullable(),
  createdAt: z.iso.datetime(),
  files: z.int().nonnegative(),
  bytes: z.int().nonnegative(),
});
export type FrozenLayer = z.infer<typeof FrozenLayer>;

/** Who uses a layer: `holder` is a path that exists as long as the use. */
const Reference = z.object({ holder: z.string(), maker: ProcessIdentity });

export type ReferenceKind = "child" | "point" | "last" | "base" | "snapshot" | "sandbox";

const RECORD_NAME = "layer.json";
const REFERENCES = "references";
const DRAFT_PREFIX = ".new-";
const GONE_PREFIX = ".gone-";
/** A longer chain is merged: mounts get slower with every layer, and the kernel limits their number. */
const CHAIN_MAX = 16;
const MERGE_TIMEOUT_MS = 10 * 60_000;

type Store = Pick<OciContext, "context" | "store" | "launch" | "identity">;

const rootOf = (oci: Store) => join(oci.context.stateDir, "layers");
export const frozenDir = (oci: Store, id: string) => join(rootOf(oci), id);
const deltaOf = (dir: string) => join(dir, "delta");
const wholeOf = (dir: string) => join(dir, "whole");
const treeOf = (dir: string) => join(dir, "tree");

/** Returns the folder of a part in a layer. It exists only if the layer changes that part. */
export function frozenPart(oci: Store, { id, whole }: MountedLayer, part: string): string {
  const dir = frozenDir(oci, id);
  if (existsSync(treeOf(dir))) return join(treeOf(dir), part === "workspace" ? "upper" : `${part}-upper`);
  return join(whole ? wholeOf(dir) : deltaOf(dir), part);
}

/** Returns what storing layers took. */
export async function bytesOf(oci: Store, layers: readonly MountedLayer[]): Promise<number> {
  const records = await Promise.all(layers.map(({ id }) => readLayer(oci, id)));
  return records.reduce((sum, { bytes }) => sum + bytes, 0);
}

export interface LayerDraft {
  id: string;
  dir: string;
  /** Where the parts are stored. */
  parts: string;
  /** Where a subvolume with all parts is stored instead. */
  tree: string;
}

/** Creates a folder for a new layer. Its name identifies this process, so that a sweep can remove it after a crash. */
export async function draftLayer(oci: Store): Promise<LayerDraft> {
  const { pid, startTicks } = oci.store.thisProcess();
  const id = newId("ly");
  const dir = join(rootOf(oci), `${DRAFT_PREFIX}${pid}-${startTicks}-${id}`);
  await mkdir(deltaOf(dir), { recursive: true, mode: 0o700 });
  return { id, dir, parts: deltaOf(dir), tree: treeOf(dir) };
}

export async function discardDraft(oci: Store, draft: LayerDraft): Promise<void> {
  await removeFiles(oci, [draft.dir]);
}

/** Publishes a draft with its first reference: completely or not at all. */
export async function publishLayer(
  oci: Store,
  draft: LayerDraft,
  { parent, reference, ...about }: Pick<FrozenLayer, "parent" | "files" | "bytes"> & { reference: { kind: ReferenceKind; holder: string } },
): Promise<void> {
  const dir = frozenDir(oci, draft.id);
  if (parent !== null) await holdLayer(oci, parent, { kind: "child", holder: dir });
  const record: FrozenLayer = { id: draft.id, parent, createdAt: new Date().toISOString(), ...about };
  await writeFile(join(draft.dir, RECORD_NAME), JSON.stringify(record), { mode: 0o600 });
  await mkdir(join(draft.dir, REFERENCES), { mode: 0o700 });
  await writeReference(oci, join(draft.dir, REFERENCES), reference);
  oci.context.crashpoint?.("layer.published:before");
  await rename(draft.dir, dir);
  oci.context.crashpoint?.("layer.published:after");
}

/** Throws `not_found`, or `internal` for a damaged record. */
export async function readLayer(oci: Store, id: string): Promise<FrozenLayer> {
  const text = await ifErrno(readFile(join(frozenDir(oci, id), RECORD_NAME), "utf8"), ABSENT, null);
  if (text === null) throw missing(id);
  const parsed = FrozenLayer.safeParse(jsonOrNull(text));
  if (parsed.success) return parsed.data;
  throw new CaissonError("internal", `the record of the layer ${id} is damaged`);
}

function missing(id: string): CaissonError {
  return new CaissonError("not_found", `the files of the point ${id} no longer exist`, {
    hint: "List the points that exist: caisson snapshot du SESSION",
  });
}

/** Returns the subvolume of a layer that was made on btrfs; null for any other layer. */
export function frozenTree(oci: Store, id: string): string | null {
  const tree = treeOf(frozenDir(oci, id));
  return isSubvolume(tree) ? tree : null;
}

/** Returns the layers that make up a point, topmost first. */
export async function chainOf(oci: Store, id: string | null): Promise<MountedLayer[]> {
  const chain: MountedLayer[] = [];
  for (let next = id; next !== null; ) {
    const { parent } = await readLayer(oci, next);
    const whole = existsSync(wholeOf(frozenDir(oci, next)));
    chain.push({ id: next, whole });
    next = whole ? null : parent;
  }
  return chain;
}

/**
 * Merges a layer with those below it if they are many. The result shares their files. Layers that something still
 * mounts stay; the others are removed with their last point.
 */
export async function shortenChain(oci: Store, id: string): Promise<void> {
  const chain = await chainOf(oci, id);
  // Sessions on btrfs do not lengthen a chain, and a subvolume shares no files by hard links.
  if (chain.length < CHAIN_MAX || chain.some((layer) => existsSync(treeOf(frozenDir(oci, layer.id))))) return;
  const dir = frozenDir(oci, id);
  const draft = join(dir, `whole-${oci.store.thisProcess().pid}`);
  await removeFiles(oci, existsSync(draft) ? [draft] : []);
  await mkdir(draft, { mode: 0o700 });
  const parts = new Map<string, string[]>();
  for (const layer of chain) {
    const folder = frozenPart(oci, layer, ".");
    for (const part of await readdir(folder)) parts.set(part, [...(parts.get(part) ?? []), join(folder, part)]);
  }
  for (const [part, folders] of parts) {
    const plan = [...oci.identity().plan, ...[join(draft, part), ...folders].map((path) => ["argument", path] as const)];
    await oci.launch({ what: "merge", plan, timeoutMs: MERGE_TIMEOUT_MS });
  }
  oci.context.crashpoint?.("layer.merged:before");
  await rename(draft, wholeOf(dir));
  oci.context.crashpoint?.("layer.merged:after");
  // What mounts the layers below has a reference to each of them.
  const { parent } = await readLayer(oci, id);
  if (parent !== null) await dropLayer(oci, parent, { kind: "child", holder: dir });
}

/** Adds a reference. Throws `not_found` if the layer is being removed. Idempotent. */
export async function holdLayer(oci: Store, id: string, reference: { kind: ReferenceKind; holder: string }): Promise<void> {
  try {
    await writeReference(oci, join(frozenDir(oci, id), REFERENCES), reference);
  } catch (error) {
    if (isErrno(error, "ENOENT")) throw missing(id);
    throw error;
  }
}

/** Drops a reference, and removes the layer if it was the last one. Idempotent. */
export async function dropLayer(oci: Store, id: string, reference: { kind: ReferenceKind; holder: string }): Promise<void> {
  oci.context.crashpoint?.("layer.dropped:before");
  await rm(join(frozenDir(oci, id), REFERENCES, referenceName(reference)), { force: true });
  oci.context.crashpoint?.("layer.dropped:after");
  await collect(oci, id);
}

function referenceName({ kind, holder }: { kind: ReferenceKind; holder: string }): string {
  return `${kind}-${createHash("sha256").update(holder).digest("hex").slice(0, 24)}`;
}

async function writeReference(oci: Store, folder: string, reference: { kind: ReferenceKind; holder: string }): Promise<void> {
  const content = { holder: reference.holder, maker: oci.store.thisProcess() };
  await writeFile(join(folder, referenceName(reference)), JSON.stringify(content), { mode: 0o600 });
}

/** Removes a layer without references. Removing the folder of references first refuses new ones. */
async function collect(oci: Store, id: string): Promise<void> {
  const dir = frozenDir(oci, id);
  try {
    await rmdir(join(dir, REFERENCES));
  } catch (error) {
    if (isErrno(error, "ENOTEMPTY", "EEXIST", "ENOENT")) return;
    throw error;
  }
  await removeCollected(oci, id);
}

async function removeCollected(oci: Store, id: string): Promise<void> {
  const dir = frozenDir(oci, id);
  const { parent } = await readLayer(oci, id);
  const trash = join(rootOf(oci), `${GONE_PREFIX}${id}`);
  oci.context.crashpoint?.("layer.removed:before");
  await rename(dir, trash);
  oci.context.crashpoint?.("layer.removed:after");
  await removeFiles(oci, [trash]);
  if (parent !== null) await dropLayer(oci, parent, { kind: "child", holder: dir });
}

/** Whether something still uses a layer, given a reference of its kind. */
export type IsHeld = (kind: ReferenceKind, holder: string, id: string) => Promise<boolean>;

/** Finishes what dead processes began, and removes references whose holders no longer exist. */
export async function sweepLayers(oci: Store, isHeld: IsHeld): Promise<void> {
  const root = rootOf(oci);
  for (const name of await ifErrno(readdir(root), ABSENT, [])) {
    const path = join(root, name);
    if (name.startsWith(GONE_PREFIX) || (name.startsWith(DRAFT_PREFIX) && !isMakerAlive(name))) await removeFiles(oci, [path]);
    else if (name.startsWith("ly_")) await sweepLayer(oci, name, isHeld);
  }
}

async function sweepLayer(oci: Store, id: string, isHeld: IsHeld): Promise<void> {
  const folder = join(frozenDir(oci, id), REFERENCES);
  const names = await ifErrno(readdir(folder), ABSENT, null);
  // The process died between the removal of the folder and that of the layer.
  if (names === null) {
    if (existsSync(join(frozenDir(oci, id), RECORD_NAME))) await removeCollected(oci, id);
    return;
  }
  for (const name of names) {
    const text = await ifErrno(readFile(join(folder, name), "utf8"), ABSENT, null);
    const reference = Reference.safeParse(jsonOrNull(text ?? ""));
    if (text === null || (reference.success && isRunning(reference.data.maker))) continue;
    const kind = name.slice(0, name.indexOf("-")) as ReferenceKind;
    if (!reference.success || !(await isHeld(kind, reference.data.holder, id))) await rm(join(folder, name), { force: true });
  }
  await collect(oci, id);
}

function isMakerAlive(name: string): boolean {
  const [pid, startTicks] = name.slice(DRAFT_PREFIX.length).split("-");
  return isRunning({ pid: Number(pid), startTicks: Number(startTicks) });
}
