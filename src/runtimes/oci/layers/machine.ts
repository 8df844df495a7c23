import { existsSync } from "node:fs";
import { mkdir, readdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { z } from "zod";
import { CaissonError } from "../../../contract/error/error.ts";
import { ABSENT, ifErrno, ignore, jsonOrNull } from "../../../lib/failures.ts";
import { createTurns } from "../../../lib/in-turn.ts";
import { randomLetters } from "../../../lib/new-id.ts";
import { showBytes } from "../../../lib/quantity.ts";
import { createDiskShares } from "../../../sandbox/disk-shares.ts";
import type { TakenPoint } from "../../../sandbox/machine-points.ts";
import type { PlanRecord } from "../launch/launcher.ts";
import { removeFiles } from "../launch/launcher.ts";
import type { OciContext } from "../oci-context.ts";
import { DISK_NAME, hasLayerDisk, makeNextDisk } from "./disk.ts";
import {
  chainOf,
  discardDraft,
  draftLayer,
  dropLayer,
  frozenDir,
  frozenTree,
  holdLayer,
  type LayerDraft,
  publishLayer,
  type ReferenceKind,
  readLayer,
  shortenChain,
} from "./frozen-layers.ts";
import { copyTreeSince, hasLiveTrees, LIVE_NAME, liveTree, NEXT_PREFIX } from "./live-tree.ts";
import { MountedLayer } from "./mounted-layer.ts";
import type { Machine } from "./parts.ts";

/** What is stored next to a machine's writable layers. */
const MachineRecord = z.object({
  /** The frozen layers below the writable ones, topmost first. */
  base: z.array(MountedLayer),
  /**
   * The newest point, and what tells how the writable layers differ from it: a folder that says what they contained, or
   * on btrfs the transaction that ended with them being the same.
   */
  last: z.object({ id: z.string(), index: z.string().nullable(), transaction: z.int().optional() }).nullable(),
  /**
   * The base of a restore that has not finished, and an upper folder that is to replace the workspace's, or a subvolume
   * that is to replace all writable layers.
   */
  restoring: z
    .object({
      base: z.array(MountedLayer),
      upper: z.string().nullable(),
      tree: z.object({ name: z.string(), of: z.string(), transaction: z.int() }).nullable().default(null),
      /** An empty disk that is to replace the machine's. */
      disk: z.string().nullable().default(null),
    })
    .nullable(),
});
type MachineRecord = z.infer<typeof MachineRecord>;

const RECORD_NAME = "machine.json";
const POINTS = "points";
const INDEX_PREFIX = "index-";
const OLD_PREFIX = "old-";
const OLD_NEXT = "upper-next";
/** How to mount the writable layers over what is below them. */
export const VIEW_NAME = "view.json";
/** Copying everything that a sandbox wrote takes long without reflinks. */
const TAKE_TIMEOUT_MS = 30 * 60_000;

export async function readMachine(dir: string): Promise<MachineRecord> {
  const text = await ifErrno(readFile(join(dir, RECORD_NAME), "utf8"), ABSENT, null);
  if (text === null) return { base: [], last: null, restoring: null };
  const parsed = MachineRecord.safeParse(jsonOrNull(text));
  if (parsed.success) return parsed.data;
  throw new CaissonError("internal", `${join(dir, RECORD_NAME)} is damaged`);
}

async function writeMachine(oci: OciContext, dir: string, record: MachineRecord): Promise<void> {
  const draft = join(dir, `${RECORD_NAME}.tmp`);
  await writeFile(draft, JSON.stringify(record), { mode: 0o600 });
  oci.context.crashpoint?.("machine.written:before");
  await rename(draft, join(dir, RECORD_NAME));
  oci.context.crashpoint?.("machine.written:after");
}

/**
 * Stores what a machine's writable layers changed since its newest point. The layers stay in place: programs may have
 * their files open. Nothing may write to them meanwhile. The machine keeps the point until it takes the next one.
 */
export async function takePoint(oci: OciContext, machine: Machine, { bytesMax }: { bytesMax: number }): Promise<TakenPoint> {
  const { dir } = machine;
  const stored = await readMachine(dir);
  // A backup may lack the newest points, and has plain folders instead of subvolumes.
  const isComparable = stored.last?.index !== null || liveTree(dir) !== null;
  const hasLast = stored.last !== null && isComparable && existsSync(frozenDir(oci, stored.last.id));
  const record = hasLast ? stored : { ...stored, last: null };
  const newest = record.last?.id ?? record.base[0]?.id ?? null;
  if (machine.parts.length === 0) return { id: newest, files: 0, bytes: 0, isNew: false };
  const tree = machine.disk === undefined ? liveTree(dir) : null;
  if (tree !== null) return await takeTree(oci, { dir, tree, record, bytesMax });
  // A process that died left one.
  await removeIndexes(oci, dir, record.last?.index ?? null);
  const draft = await draftLayer(oci);
  const index = `${INDEX_PREFIX}${randomLetters(8)}`;
  try {
    await mkdir(join(dir, index), { mode: 0o700 });
    const changes = await takeParts(oci, machine, { draft, record, index, bytesMax });
    oci.context.crashpoint?.("point.written:after");
    if (!changes.hasChanged) {
      await discardDraft(oci, draft);
      await removeIndexes(oci, dir, record.last?.index ?? null);
      return { id: newest, files: 0, bytes: 0, isNew: false };
    }
    const { files, bytes } = changes;
    await publishLayer(oci, draft, { parent: newest, files, bytes, reference: { kind: "last", holder: dir } });
    await writeMachine(oci, dir, { ...record, last: { id: draft.id, index } });
    if (record.last !== null) await dropLayer(oci, record.last.id, { kind: "last", holder: dir });
    await removeIndexes(oci, dir, index);
    await shortenChain(oci, draft.id);
    return { id: draft.id, files, bytes, isNew: true };
  } catch (error) {
    await ignore(undoTake(oci, dir, draft), "a sweep removes it after this process; the first error is thrown");
    throw tooLarge(error);
  }
}

/** Stores all writable layers of a session by a snapshot of their subvolume. */
async function takeTree(
  oci: OciContext,
  { dir, tree, record, bytesMax }: { dir: string; tree: string; record: MachineRecord; bytesMax: number },
): Promise<TakenPoint> {
  const { last } = record;
  const newest = last?.id ?? record.base[0]?.id ?? null;
  // The snapshot contains everything since the machine's base, so its parent is the base and not the last point.
  const parent = record.base[0]?.id ?? null;
  const since =
    last?.transaction === undefined ? { transaction: 0, tree: null } : { transaction: last.transaction, tree: frozenTree(oci, last.id) };
  const draft = await draftLayer(oci);
  try {
    const { transaction, files, bytes, hasChanged } = await copyTreeSince(oci, { from: tree, to: draft.tree, since, bytesMax });
    if (!hasChanged) {
      await discardDraft(oci, draft);
      return { id: newest, files: 0, bytes: 0, isNew: false };
    }
    await publishLayer(oci, draft, { parent, files, bytes, reference: { kind: "last", holder: dir } });
    await writeMachine(oci, dir, { ...record, last: { id: draft.id, index: null, transaction } });
    if (last !== null) await dropLayer(oci, last.id, { kind: "last", holder: dir });
    return { id: draft.id, files, bytes, isNew: true };
  } catch (error) {
    await ignore(undoTake(oci, dir, draft), "a sweep removes it after this process; the first error is thrown");
    throw tooLarge(error);
  }
}

/** Removes what a take left that failed, unless the machine has the point already. */
async function undoTake(oci: OciContext, dir: string, draft: LayerDraft): Promise<void> {
  await discardDraft(oci, draft);
  const { last } = await readMachine(dir);
  if (last?.id !== draft.id) await dropLayer(oci, draft.id, { kind: "last", holder: dir });
  await removeIndexes(oci, dir, last?.index ?? null);
}

/** Translates the launcher's report: the number of bytes that was exceeded, or what else is too large. */
function tooLarge(error: unknown): unknown {
  if (!(error instanceof CaissonError) || error.details?.step !== "too-large") return error;
  const { text } = error.details;
  const what = /^\d+$/.test(String(text)) ? `they take more than ${showBytes(Number(text))}` : String(text);
  return new CaissonError("too_large", `the changes since the last point cannot be stored: ${what}`, { cause: error });
}

interface Taking {
  draft: LayerDraft;
  record: MachineRecord;
  index: string;
  bytesMax: number;
}

async function takeParts(oci: OciContext, machine: Machine, taking: Taking) {
  try {
    return await launchPoint(oci, machine, taking, { records: [], views: {} });
  } catch (error) {
    // A folder was moved. Its files are complete only where the layers are mounted over what is below them.
    if (!(error instanceof CaissonError) || error.details?.step !== "moved") throw error;
    const view = await readView(machine.dir);
    // The indexes, too: otherwise the parts that were stored before the moved folder would count as unchanged.
    const index = join(machine.dir, taking.index);
    await removeFiles(oci, [taking.draft.dir, index]);
    await mkdir(taking.draft.parts, { recursive: true, mode: 0o700 });
    await mkdir(index, { mode: 0o700 });
    return await launchPoint(oci, machine, taking, view);
  }
}

const View = z.object({
  records: z.array(z.tuple([z.string()], z.union([z.string(), z.number()])).readonly()),
  /** Where each part appears, by its name. */
  views: z.record(z.string(), z.string()),
});
export type View = z.infer<typeof View>;

async function readView(dir: string): Promise<View> {
  const parsed = View.safeParse(jsonOrNull(await ifErrno(readFile(join(dir, VIEW_NAME), "utf8"), ABSENT, "")));
  if (parsed.success) return parsed.data;
  throw new CaissonError("unsupported", "a folder was moved that an earlier version's sandbox did not describe", {
    hint: "The next turn starts a sandbox that does.",
  });
}

export async function writeView(dir: string, view: View): Promise<void> {
  await writeFile(join(dir, VIEW_NAME), JSON.stringify(view), { mode: 0o600 });
}

async function launchPoint(oci: OciContext, machine: Machine, { draft, record, index, bytesMax }: Taking, view: View) {
  // Without a last point that has an index, there is no such folder.
  const before = join(machine.dir, record.last?.index ?? `${INDEX_PREFIX}none`);
  const plan: PlanRecord[] = [
    ...(view.records.length > 0 ? view.records : [...oci.identity().plan, ...(machine.disk === undefined ? [] : [machine.disk])]),
    ["bytes-max", bytesMax],
    ...machine.parts.map(({ name, upper }): PlanRecord => {
      const indexes = [join(before, name), join(machine.dir, index, `${name}`)] as const;
      return ["part", name, upper, ...indexes, join(draft.parts, name), view.views[name] ?? "/"];
    }),
  ];
  const { stateDir, disk = createDiskShares({ stateDir }) } = oci.context;
  const lines = await disk.write({ what: "the files of a point" }, ({ signal }) =>
    oci.launch({ what: "point", plan, signal, timeoutMs: TAKE_TIMEOUT_MS }),
  );
  const parts = lines.flatMap((line) => {
    const [, files, bytes, changed] = /^part \S+ (\d+) (\d+) ([01])$/.exec(line) ?? [];
    return files === undefined ? [] : [{ files: Number(files), bytes: Number(bytes), hasChanged: changed === "1" }];
  });
  return {
    files: parts.reduce((sum, { files }) => sum + files, 0),
    bytes: parts.reduce((sum, { bytes }) => sum + bytes, 0),
    hasChanged: parts.some(({ hasChanged }) => hasChanged),
  };
}

async function removeIndexes(oci: OciContext, dir: string, except: string | null): Promise<void> {
  const names = (await ifErrno(readdir(dir), ABSENT, [])).filter((name) => name.startsWith(INDEX_PREFIX) && name !== except);
  await removeThere(
    oci,
    names.map((name) => join(dir, name)),
  );
}

/** Keeps a point until `removePoint`. */
export async function keepPoint(oci: OciContext, dir: string, id: string): Promise<void> {
  await mkdir(join(dir, POINTS), { recursive: true, mode: 0o700 });
  await writeFile(join(dir, POINTS, id), "", { mode: 0o600 });
  oci.context.crashpoint?.("point.kept:before");
  await holdLayer(oci, id, { kind: "point", holder: dir });
}

export async function removePoint(oci: OciContext, dir: string, id: string): Promise<void> {
  // First, so that no point is listed whose files are gone. A sweep finds the reference.
  await rm(join(dir, POINTS, id), { force: true });
  oci.context.crashpoint?.("point.removed:after");
  await dropLayer(oci, id, { kind: "point", holder: dir });
}

export async function keptPoints(dir: string): Promise<string[]> {
  return await ifErrno(readdir(join(dir, POINTS)), ABSENT, []);
}

/**
 * Gives a machine the files of a point, or none for null. `upper` is a folder in the machine's that becomes the
 * workspace's layer. No sandbox may use the machine. A restore that was interrupted is finished by the next process.
 */
export async function restorePoint(oci: OciContext, dir: string, id: string | null, upper: string | null = null): Promise<void> {
  await finishRestore(oci, dir);
  const disk = await makeNextDisk(oci, dir);
  const { base, tree } = await placeFiles(oci, dir, { id, name: disk === null ? `${NEXT_PREFIX}${randomLetters(8)}` : null });
  await writeMachine(oci, dir, { ...(await readMachine(dir)), restoring: { base, upper, tree, disk } });
  await finishRestore(oci, dir);
}

/**
 * Holds the layers below the writable ones of a machine with the files of a point. Those of a point that is a subvolume
 * are copied to a subvolume `name`, unless that is null, and only what is below them is the machine's base.
 */
async function placeFiles(oci: OciContext, dir: string, { id, name }: { id: string | null; name: string | null }) {
  const frozen = id !== null && name !== null && (await hasLiveTrees(oci)) ? frozenTree(oci, id) : null;
  if (id === null || name === null || frozen === null) {
    const base = await chainOf(oci, id);
    for (const layer of base) await holdLayer(oci, layer.id, { kind: "base", holder: dir });
    return { base, tree: null };
  }
  const base = await chainOf(oci, (await readLayer(oci, id)).parent);
  for (const layer of base) await holdLayer(oci, layer.id, { kind: "base", holder: dir });
  // What changes from here on is compared with this point.
  await holdLayer(oci, id, { kind: "last", holder: dir });
  const { transaction } = await copyTreeSince(oci, { from: frozen, to: join(dir, name) });
  return { base, tree: { name, of: id, transaction } };
}

/** Whether a name in a machine's folder is one of its writable layers, or all of them. */
const isWritable = (name: string) => name === LIVE_NAME || /(?:^|-)(?:upper|work)$/.test(name);

/** Two readers of a session may both find an interrupted restore. */
const restores = createTurns();

/** Completes a restore. Everything in the folder is either old, or named by the record. */
export function finishRestore(oci: OciContext, dir: string): Promise<void> {
  return restores(dir, () => replaceFiles(oci, dir));
}

/** Completes a restore that was interrupted, for a reader that holds the session: otherwise it would see half of it. */
export async function finishInterruptedRestore(oci: OciContext, dir: string): Promise<void> {
  if ((await readMachine(dir)).restoring !== null) await finishRestore(oci, dir);
}

async function replaceFiles(oci: OciContext, dir: string): Promise<void> {
  const record = await readMachine(dir);
  const { restoring } = record;
  if (restoring !== null) {
    const replaced = restoring.tree === null ? { from: restoring.upper, to: "upper" } : { from: restoring.tree.name, to: LIVE_NAME };
    const isReplaced = replaced.from !== null && !existsSync(join(dir, replaced.from));
    for (const name of await readdir(dir)) {
      if (!isWritable(name) || (isReplaced && name === replaced.to)) continue;
      await rename(join(dir, name), join(dir, `${OLD_PREFIX}${randomLetters(8)}`));
      oci.context.crashpoint?.("restore.moved:after");
    }
    await replaceDisk(dir, restoring.disk);
    if (replaced.from !== null && !isReplaced) await rename(join(dir, replaced.from), join(dir, replaced.to));
    oci.context.crashpoint?.("restore.replaced:after");
    const { tree } = restoring;
    const last = tree === null ? null : { id: tree.of, index: null, transaction: tree.transaction };
    await writeMachine(oci, dir, { base: restoring.base, last, restoring: null });
    await release(oci, dir, {
      base: record.base.filter(({ id }) => !restoring.base.some((layer) => layer.id === id)),
      last: record.last?.id === last?.id ? null : record.last,
    });
  }
  // A restore of an earlier version was interrupted.
  else if (!existsSync(join(dir, "upper")) && existsSync(join(dir, OLD_NEXT))) await rename(join(dir, OLD_NEXT), join(dir, "upper"));
  const old = (await ifErrno(readdir(dir), ABSENT, [])).filter(
    // A subvolume is left if a restore's process died before it was noted.
    (name) => name.startsWith(OLD_PREFIX) || name.startsWith(NEXT_PREFIX) || (restoring && name.startsWith(INDEX_PREFIX)),
  );
  await removeThere(
    oci,
    old.map((name) => join(dir, name)),
  );
}

async function replaceDisk(dir: string, next: string | null): Promise<void> {
  if (next === null || !existsSync(join(dir, next))) return;
  if (existsSync(join(dir, DISK_NAME))) await rename(join(dir, DISK_NAME), join(dir, `${OLD_PREFIX}${randomLetters(8)}`));
  await rename(join(dir, next), join(dir, DISK_NAME));
}

async function release(oci: OciContext, dir: string, { base, last }: Pick<MachineRecord, "base" | "last">): Promise<void> {
  for (const { id } of base) await dropLayer(oci, id, { kind: "base", holder: dir });
  if (last !== null) await dropLayer(oci, last.id, { kind: "last", holder: dir });
}

/** Fills a new machine with the files of a point. */
export async function startFrom(oci: OciContext, dir: string, id: string | null): Promise<void> {
  const { base, tree } = await placeFiles(oci, dir, { id, name: hasLayerDisk(dir) ? null : LIVE_NAME });
  const last = tree === null ? null : { id: tree.of, index: null, transaction: tree.transaction };
  await writeMachine(oci, dir, { base, last, restoring: null });
}

/** Forgets everything that a machine's folder says about frozen layers. */
export async function releaseMachine(oci: OciContext, dir: string): Promise<void> {
  // A sweep finds what only a damaged record names.
  const record = await ignore(readMachine(dir), "the session must be removable");
  for (const id of await keptPoints(dir)) await removePoint(oci, dir, id);
  if (record !== undefined) await release(oci, dir, record);
  for (const { id } of record?.restoring?.base ?? []) await dropLayer(oci, id, { kind: "base", holder: dir });
  const next = record?.restoring?.tree?.of;
  if (next !== undefined) await dropLayer(oci, next, { kind: "last", holder: dir });
  for (const name of [RECORD_NAME, VIEW_NAME, POINTS]) await rm(join(dir, name), { recursive: true, force: true });
  await removeIndexes(oci, dir, null);
}

/** Whether a machine's folder still uses a layer in the way that a reference says. */
export async function isMachineUsing(dir: string, kind: ReferenceKind, id: string): Promise<boolean> {
  if (!existsSync(dir)) return false;
  if (kind === "point") return existsSync(join(dir, POINTS, id));
  const record = await ignore(readMachine(dir), "it may use the layer");
  if (record === undefined) return true;
  if (kind === "last") return record.last?.id === id || record.restoring?.tree?.of === id;
  return [...record.base, ...(record.restoring?.base ?? [])].some((layer) => layer.id === id);
}

async function removeThere(oci: OciContext, paths: readonly string[]): Promise<void> {
  await removeFiles(
    oci,
    paths.filter((path) => existsSync(path)),
  );
}
