import { mkdir, open, readdir, readFile, rename } from "node:fs/promises";
import { basename, join } from "node:path";
import { z } from "zod";
import { CaissonError } from "../../../contract/error/error.ts";
import { checkValue, tellProblems } from "../../../contract/error/plain-problems.ts";
import { SandboxId, SnapshotId } from "../../../contract/ids.ts";
import { ProcessIdentity } from "../../../contract/process-identity.ts";
import { SandboxConfig } from "../../../contract/sandbox/sandbox.ts";
import { ABSENT, ifErrno, ignore, isErrno, jsonOrNull } from "../../../lib/failures.ts";
import { newId } from "../../../lib/new-id.ts";
import { isRunning } from "../../../sandbox/process-identity.ts";
import { Basis } from "../details.ts";
import { removeFiles } from "../launch/launcher.ts";
import type { OciContext } from "../oci-context.ts";
import { dropHolder, dropLayer, duringLayerWork } from "./frozen-layers.ts";
import { MountedLayer } from "./mounted-layer.ts";

/** What is stored about a snapshot, next to its layers. */
export const SnapshotRecord = z.object({
  id: SnapshotId,
  name: z.string().nullable(),
  sandbox: SandboxId,
  createdAt: z.iso.datetime(),
  bytes: z.number(),
  /** What a sandbox from this snapshot starts from. */
  basis: Basis,
  /** The frozen layers in the basis, which it refers to. Snapshots of earlier versions contain their own copies. */
  layers: z.array(MountedLayer).default([]),
  /** What a restore of its processes needs, which are in its folder `memory`; null without processes. */
  socket: z.int().positive().nullable().default(null),
  /** The sandbox's configuration, so that a fork is created like it. */
  spec: SandboxConfig,
  /**
   * The process that created the snapshot for a fork. Such a snapshot is never listed, and is removed after its creator
   * has ended and nothing uses it.
   */
  hiddenFor: ProcessIdentity.nullable(),
});
export type SnapshotRecord = z.infer<typeof SnapshotRecord>;

const RECORD_NAME = "snapshot.json";
const DRAFT_PREFIX = ".new-";
const GONE_PREFIX = ".gone-";

export function snapshotDir(oci: OciContext, id: SnapshotId): string {
  return join(oci.context.stateDir, "snapshots", id);
}

export function newSnapshotId(): SnapshotId {
  return newId("sn");
}

/** Reads a snapshot's record. Throws `not_found`, or `internal` for a damaged record. */
export async function readSnapshot(oci: OciContext, id: SnapshotId): Promise<SnapshotRecord> {
  let text: string;
  try {
    text = await readFile(join(snapshotDir(oci, id), RECORD_NAME), "utf8");
  } catch (cause) {
    throw new CaissonError("not_found", `there is no snapshot ${id}`, { hint: "`caisson snapshot ls` lists them.", cause });
  }
  const parsed = checkValue(SnapshotRecord, jsonOrNull(text));
  if (!parsed.success) throw new CaissonError("internal", `the record of snapshot ${id} is damaged: ${tellProblems(parsed.problems)}`);
  return parsed.data;
}

/** Writes the record into the draft, and publishes both under the snapshot's name in one step. */
export async function publishSnapshot(oci: OciContext, draft: string, record: SnapshotRecord): Promise<void> {
  const file = await open(join(draft, RECORD_NAME), "wx", 0o600);
  try {
    await file.writeFile(JSON.stringify(record));
    await file.sync();
  } finally {
    await file.close();
  }
  oci.context.crashpoint?.("snapshot.published:before");
  await rename(draft, snapshotDir(oci, record.id));
  oci.context.crashpoint?.("snapshot.published:after");
}

/** Returns all snapshots, and the folders of partly removed ones and of unfinished ones whose creators died. */
export async function listSnapshots(oci: OciContext): Promise<{ snapshots: SnapshotRecord[]; remains: string[] }> {
  const snapshots: SnapshotRecord[] = [];
  const remains: string[] = [];
  const root = join(oci.context.stateDir, "snapshots");
  for (const name of await ifErrno(readdir(root), ABSENT, [])) {
    const id = SnapshotId.safeParse(name);
    if (name.startsWith(GONE_PREFIX) || (name.startsWith(DRAFT_PREFIX) && !makerAlive(name))) remains.push(join(root, name));
    if (id.success) snapshots.push(...(await readIfThere(oci, id.data)));
  }
  return { snapshots, remains };
}

async function readIfThere(oci: OciContext, id: SnapshotId): Promise<SnapshotRecord[]> {
  try {
    return [await readSnapshot(oci, id)];
  } catch (error) {
    // Another process removed it between the listing and the read.
    if (error instanceof CaissonError && error.code === "not_found") return [];
    throw error;
  }
}

/**
 * Creates a folder for a new snapshot. Its name identifies the process, so that a sweep can tell a slow creator from a
 * dead one.
 */
export async function makeSnapshotDraft(oci: OciContext, id: SnapshotId): Promise<string> {
  const root = join(oci.context.stateDir, "snapshots");
  await mkdir(root, { recursive: true, mode: 0o700 });
  const { pid, startTicks } = oci.store.thisProcess();
  const draft = join(root, `${DRAFT_PREFIX}${pid}-${startTicks}-${id}`);
  await mkdir(draft, { mode: 0o700 });
  oci.context.crashpoint?.("snapshot.drafted:after");
  return draft;
}

function makerAlive(name: string): boolean {
  const [pid, startTicks] = name.slice(DRAFT_PREFIX.length).split("-");
  return isRunning({ pid: Number(pid), startTicks: Number(startTicks) });
}

/** Whether a sandbox or another snapshot uses one of its layers. */
export async function isBuiltOn(oci: OciContext, id: SnapshotId): Promise<boolean> {
  return isFolderInUse(oci, snapshotDir(oci, id), { except: id });
}

/** Whether a sandbox, or a snapshot other than `except`, has a layer in the folder. */
export async function isFolderInUse(oci: OciContext, folder: string, options: { except?: SnapshotId } = {}): Promise<boolean> {
  return isBelow(folder, (await usedLayers(oci, options)).layers);
}

/** Whether one of the layers is the folder or in it. */
export const isBelow = (folder: string, layers: readonly string[]) =>
  layers.some((layer) => layer === folder || layer.startsWith(`${folder}/`));

/**
 * Returns the folders of all layers of sandboxes, and of snapshots other than `except`. `areAllKnown` is false if a
 * sandbox has a damaged record, or does not have its layers yet.
 */
export async function usedLayers(
  oci: OciContext,
  options: { except?: SnapshotId } = {},
): Promise<{ layers: string[]; areAllKnown: boolean }> {
  const layersOf = ({ root, workspaceLayers }: Basis) => [
    ...root.layers.map((layer) => layer.dir),
    ...root.binds.flatMap((bind) => bind.layers),
    ...workspaceLayers,
  ];
  const { snapshots } = await listSnapshots(oci);
  const { records, damaged } = await oci.store.list();
  const ours = records.filter(({ runtime }) => runtime === "oci");
  const bases = ours.map(({ details }) => z.object({ basis: Basis }).safeParse(details));
  return {
    layers: [
      ...snapshots.flatMap((snapshot) => (snapshot.id === options.except ? [] : layersOf(snapshot.basis))),
      ...bases.flatMap((parsed) => (parsed.success ? layersOf(parsed.data.basis) : [])),
    ],
    areAllKnown: damaged.length === 0 && bases.every(({ success }) => success),
  };
}

/**
 * Removes a snapshot: first its name, so that no process finds it, then its files. The next sweep removes what a crash
 * leaves. Idempotent.
 */
export async function removeSnapshotFiles(oci: OciContext, id: SnapshotId): Promise<void> {
  await duringLayerWork(oci, () => removeSnapshotNow(oci, id));
}

/** Removes folders that `listSnapshots` returned as remains. */
export async function removeRemains(oci: OciContext, remains: readonly string[]): Promise<void> {
  for (const path of remains) {
    const id = SnapshotId.safeParse(basename(path).replace(GONE_PREFIX, ""));
    if (id.success) await dropHolder(oci, snapshotDir(oci, id.data), ["snapshot"]);
  }
  await removeFiles(oci, remains);
}

async function removeSnapshotNow(oci: OciContext, id: SnapshotId): Promise<void> {
  const record = await ignore(readSnapshot(oci, id), "without a record, its references are looked up");
  const trashDir = join(oci.context.stateDir, "snapshots", `${GONE_PREFIX}${id}`);
  oci.context.crashpoint?.("snapshot.removed:before");
  await rename(snapshotDir(oci, id), trashDir).catch((error: unknown) => {
    if (!isErrno(error, "ENOENT")) throw error;
  });
  oci.context.crashpoint?.("snapshot.removed:after");
  // After a crash here, a sweep finds the folder.
  const holder = snapshotDir(oci, id);
  if (record === undefined) await dropHolder(oci, holder, ["snapshot"]);
  for (const layer of record?.layers ?? []) await dropLayer(oci, layer.id, { kind: "snapshot", holder });
  await removeFiles(oci, [trashDir]);
}
