import { createHash } from "node:crypto";
import { existsSync } from "node:fs";
import { mkdir, readdir, readFile, rename, rm, rmdir, writeFile } from "node:fs/promises";
import { join, relative, resolve } from "node:path";
import { z } from "zod";
import { CaissonError } from "../../../contract/error/error.ts";
import { ProcessIdentity } from "../../../contract/process-identity.ts";
import { ABSENT, ifErrno, isErrno, jsonOrNull } from "../../../lib/failures.ts";
import { newId, randomLetters } from "../../../lib/new-id.ts";
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

/** Who uses a layer: `holder` is a path in the state folder that exists as long as the use. */
const Reference = z.object({ holder: z.string(), maker: ProcessIdentity });

export type ReferenceKind = "child" | "point" | "last" | "base" | "snapshot" | "sandbox";

const RECORD_NAME = "layer.json";
const REFERENCES = "references";
const DRAFT_PREFIX = ".new-";
const GONE_PREFIX = ".gone-";
/** What a process is doing, so that a sweep after its death looks at every layer. */
const WORK_PREFIX = ".work-";
/** In a layer's folder: what a process merges, until it is complete. */
const MERGE_PREFIX = "whole-";
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
  const id = newId("ly");
  const dir = draftPath(oci, id);
  await mkdir(deltaOf(dir), { recursive: true, mode: 0o700 });
  oci.context.crashpoint?.("layer.drafted:after");
  return { id, dir, parts: deltaOf(dir), tree: treeOf(dir) };
}

function draftPath(oci: Store, name: string): string {
  return join(rootOf(oci), `${DRAFT_PREFIX}${makerName(oci)}-${name}`);
}

function makerName(oci: Store): string {
  const { pid, startTicks } = oci.store.thisProcess();
  return `${pid}-${startTicks}`;
}

export async function discardDraft(oci: Store, draft: LayerDraft): Promise<void> {
  await removeFiles(oci, [draft.dir]);
}

/**
 * Does work of several writes: if the process dies between them, the next sweep finds what they left. Without such a
 * trace, a sweep does not read the layers.
 */
export async function duringLayerWork<Result>(oci: Store, work: () => Promise<Result>): Promise<Result> {
  const trace = join(rootOf(oci), `${WORK_PREFIX}${makerName(oci)}-${randomLetters(8)}`);
  await mkdir(rootOf(oci), { recursive: true, mode: 0o700 });
  await writeFile(trace, "", { mode: 0o600 });
  try {
    return await work();
  } finally {
    await rm(trace, { force: true });
  }
}

/** Publishes a draft with its first reference: completely or not at all. */
export async function publishLayer(
  oci: Store,
  draft: LayerDraft,
  { parent, reference, ...about }: Pick<FrozenLayer, "parent" | "files" | "bytes"> & { reference: { kind: ReferenceKind; holder: string } },
): Promise<void> {
  const dir = frozenDir(oci, draft.id);
  if (parent !== null) await holdLayer(oci, parent, { kind: "child", holder: dir });
  try {
    const record: FrozenLayer = { id: draft.id, parent, createdAt: new Date().toISOString(), ...about };
    await writeFile(join(draft.dir, RECORD_NAME), JSON.stringify(record), { mode: 0o600 });
    await mkdir(join(draft.dir, REFERENCES), { mode: 0o700 });
    await writeReference(oci, join(draft.dir, REFERENCES), reference);
    oci.context.crashpoint?.("layer.published:before");
    await rename(draft.dir, dir);
  } catch (error) {
    // A sweep trusts references of living processes, and a station lives long.
    if (parent !== null) await dropLayer(oci, parent, { kind: "child", holder: dir });
    throw error;
  }
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

async function ifNotFound<Value>(promise: Promise<Value>): Promise<Value | null> {
  return await promise.catch((error: unknown) => {
    if (error instanceof CaissonError && error.code === "not_found") return null;
    throw error;
  });
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
  const draft = join(dir, `${MERGE_PREFIX}${makerName(oci)}`);
  try {
    await mkdir(draft, { mode: 0o700 });
    await mergeInto(oci, draft, chain);
    oci.context.crashpoint?.("layer.merged:before");
    await rename(draft, wholeOf(dir));
  } catch (error) {
    await removeFiles(oci, existsSync(draft) ? [draft] : []);
    throw error;
  }
  oci.context.crashpoint?.("layer.merged:after");
  // What mounts the layers below has a reference to each of them.
  const { parent } = await readLayer(oci, id);
  if (parent !== null) await dropLayer(oci, parent, { kind: "child", holder: dir });
}

async function mergeInto(oci: Store, draft: string, chain: readonly MountedLayer[]): Promise<void> {
  const parts = new Map<string, string[]>();
  for (const layer of chain) {
    const folder = frozenPart(oci, layer, ".");
    for (const part of await readdir(folder)) parts.set(part, [...(parts.get(part) ?? []), join(folder, part)]);
  }
  for (const [part, folders] of parts) {
    const plan = [...oci.identity().plan, ...[join(draft, part), ...folders].map((path) => ["argument", path] as const)];
    await oci.launch({ what: "merge", plan, timeoutMs: MERGE_TIMEOUT_MS });
    oci.context.crashpoint?.("layer.merging:after");
  }
}

/** Whether a layer still needs those below it: a merged one does not. */
export function needsParent(layerFolder: string): boolean {
  return existsSync(layerFolder) && !existsSync(wholeOf(layerFolder));
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
  await rm(join(frozenDir(oci, id), REFERENCES, referenceName(oci, reference)), { force: true });
  oci.context.crashpoint?.("layer.dropped:after");
  await collect(oci, id);
}

function referenceName(oci: Store, { kind, holder }: { kind: ReferenceKind; holder: string }): string {
  return `${kind}-${createHash("sha256").update(storedHolder(oci, holder)).digest("hex").slice(0, 24)}`;
}

/** Relative to the state folder, which a user may move. */
const storedHolder = (oci: Store, holder: string) => relative(oci.context.stateDir, holder);

/** Writes a reference completely or not at all: a sweep removes what it cannot read. */
async function writeReference(oci: Store, folder: string, reference: { kind: ReferenceKind; holder: string }): Promise<void> {
  const content = { holder: storedHolder(oci, reference.holder), maker: oci.store.thisProcess() };
  const draft = draftPath(oci, randomLetters(12));
  try {
    await writeFile(draft, JSON.stringify(content), { mode: 0o600 });
    oci.context.crashpoint?.("layer.held:before");
    await rename(draft, join(folder, referenceName(oci, reference)));
  } catch (error) {
    await rm(draft, { force: true });
    throw error;
  }
  oci.context.crashpoint?.("layer.held:after");
}

/**
 * Drops everything that a removed holder refers to. Its record does not name what an interrupted change left, and a
 * sweep keeps the references that living processes made.
 */
export async function dropHolder(oci: Store, holder: string, kinds: readonly ReferenceKind[]): Promise<void> {
  for (const id of await ifErrno(readdir(rootOf(oci)), ABSENT, [])) {
    for (const kind of kinds) {
      const reference = { kind, holder };
      if (existsSync(join(frozenDir(oci, id), REFERENCES, referenceName(oci, reference)))) await dropLayer(oci, id, reference);
    }
  }
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
  oci.context.crashpoint?.("layer.collected:after");
  await removeCollected(oci, id);
}

/** Another process may do the same: one of them gets the folder. */
async function removeCollected(oci: Store, id: string): Promise<void> {
  const dir = frozenDir(oci, id);
  const layer = await ifNotFound(readLayer(oci, id));
  if (layer === null) return;
  const { parent } = layer;
  const trash = join(rootOf(oci), `${GONE_PREFIX}${id}`);
  oci.context.crashpoint?.("layer.removed:before");
  if (
    !(await ifErrno(
      rename(dir, trash).then(() => true),
      ABSENT,
      false,
    ))
  )
    return;
  oci.context.crashpoint?.("layer.removed:after");
  await removeFiles(oci, [trash]);
  if (parent !== null) await dropLayer(oci, parent, { kind: "child", holder: dir });
}

/** Whether something still uses a layer, given a reference of its kind. */
export type IsHeld = (kind: ReferenceKind, holder: string, id: string) => Promise<boolean>;

/** Finishes what dead processes began, and removes references whose holders no longer exist. */
export async function sweepLayers(oci: Store, isHeld: IsHeld): Promise<void> {
  const root = rootOf(oci);
  const names = await ifErrno(readdir(root), ABSENT, []);
  if (names.length === 0) return;
  const isOfDead = (prefix: string) => (name: string) => name.startsWith(prefix) && !isMakerAlive(name, prefix);
  const remove = (some: readonly string[]) =>
    removeFiles(
      oci,
      some.map((name) => join(root, name)),
    );
  await duringLayerWork(oci, async () => {
    // First, because they hold layers.
    await remove([...names.filter((name) => name.startsWith(GONE_PREFIX)), ...names.filter(isOfDead(DRAFT_PREFIX))]);
    for (const name of names.filter((each) => each.startsWith("ly_"))) await sweepLayer(oci, name, isHeld);
    await remove(names.filter(isOfDead(WORK_PREFIX)));
  });
}

async function sweepLayer(oci: Store, id: string, isHeld: IsHeld): Promise<void> {
  const dir = frozenDir(oci, id);
  const folder = join(dir, REFERENCES);
  const names = await ifErrno(readdir(folder), ABSENT, null);
  // The process died between the removal of the folder and that of the layer.
  if (names === null) {
    await removeCollected(oci, id);
    return;
  }
  const left = (await ifErrno(readdir(dir), ABSENT, [])).filter(
    (name) => name.startsWith(MERGE_PREFIX) && !isMakerAlive(name, MERGE_PREFIX),
  );
  await removeFiles(
    oci,
    left.map((name) => join(dir, name)),
  );
  for (const name of names) {
    const text = await ifErrno(readFile(join(folder, name), "utf8"), ABSENT, null);
    const reference = Reference.safeParse(jsonOrNull(text ?? ""));
    if (text === null || (reference.success && isRunning(reference.data.maker))) continue;
    const kind = name.slice(0, name.indexOf("-")) as ReferenceKind;
    if (!reference.success || !(await isHeld(kind, resolve(oci.context.stateDir, reference.data.holder), id)))
      await rm(join(folder, name), { force: true });
  }
  await collect(oci, id);
}

function isMakerAlive(name: string, prefix: string): boolean {
  const [pid, startTicks] = name.slice(prefix.length).split("-");
  return isRunning({ pid: Number(pid), startTicks: Number(startTicks) });
}
