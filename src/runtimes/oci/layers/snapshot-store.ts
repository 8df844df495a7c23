import { mkdir, open, readdir, readFile, rename } from "node:fs/promises";
import { join } from "node:path";
import { z } from "zod";
import { CaissonError } from "../../../contract/error.ts";
import { SandboxId, SnapshotId } from "../../../contract/ids.ts";
import { checkValue, tellProblems } from "../../../contract/plain-problems.ts";
import { ProcessIdentity } from "../../../contract/process-identity.ts";
import { SandboxSpec } from "../../../contract/sandbox.ts";
import { isErrno } from "../../../lib/is-errno.ts";
import { jsonOrNull } from "../../../lib/json-or-null.ts";
import { newId } from "../../../lib/new-id.ts";
import { isRunning } from "../../../sandbox/process-identity.ts";
import { Basis } from "../details.ts";
import { removeFiles } from "../launch/launcher.ts";
import type { OciContext } from "../oci-context.ts";

/** What is remembered of a snapshot, beside its layers. */
export const SnapshotRecord = z.object({
  id: SnapshotId,
  name: z.string().nullable(),
  sandbox: SandboxId,
  createdAt: z.iso.datetime(),
  bytes: z.number(),
  /** What a sandbox from this snapshot starts from. */
  basis: Basis,
  /** The sandbox's own, so that a fork is made like it. */
  spec: SandboxSpec,
  /**
   * Made for a fork, by this process: never listed, and removed when the maker is gone and nothing is built on it any
   * more.
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

/** Throws `not_found`, `internal` for a damaged record. */
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

/** Writes the record into the draft and shows the whole under its name, in one step. */
export async function publishSnapshot(oci: OciContext, draft: string, record: SnapshotRecord): Promise<void> {
  const file = await open(join(draft, RECORD_NAME), "wx", 0o600);
  try {
    await file.writeFile(JSON.stringify(record));
    await file.sync();
  } finally {
    await file.close();
  }
  await rename(draft, snapshotDir(oci, record.id));
}

/** All snapshots, and the folders of half-made ones whose makers died and of half-removed ones. */
export async function listSnapshots(oci: OciContext): Promise<{ snapshots: SnapshotRecord[]; remains: string[] }> {
  const snapshots: SnapshotRecord[] = [];
  const remains: string[] = [];
  const root = join(oci.context.stateDir, "snapshots");
  for (const name of await readdir(root).catch(() => [])) {
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
    // Removed by somebody else between the listing and the reading.
    if (error instanceof CaissonError && error.code === "not_found") return [];
    throw error;
  }
}

/** A folder to make a snapshot in; its name says who does, so that a sweep can tell a slow maker from a dead one. */
export async function makeSnapshotDraft(oci: OciContext, id: SnapshotId): Promise<string> {
  const root = join(oci.context.stateDir, "snapshots");
  await mkdir(root, { recursive: true, mode: 0o700 });
  const { pid, startTicks } = oci.store.ownerOf();
  const draft = join(root, `${DRAFT_PREFIX}${pid}-${startTicks}-${id}`);
  await mkdir(draft, { mode: 0o700 });
  return draft;
}

function makerAlive(name: string): boolean {
  const [pid, startTicks] = name.slice(DRAFT_PREFIX.length).split("-");
  return isRunning({ pid: Number(pid), startTicks: Number(startTicks) });
}

/** Whether a sandbox or another snapshot has one of its layers. */
export async function isBuiltOn(oci: OciContext, id: SnapshotId): Promise<boolean> {
  return isFolderInUse(oci, snapshotDir(oci, id), { except: id });
}

/** Whether a sandbox, or a snapshot but the one excepted, has a layer in the folder. */
export async function isFolderInUse(oci: OciContext, folder: string, options: { except?: SnapshotId } = {}): Promise<boolean> {
  const dir = `${folder}/`;
  const uses = ({ root, workspaceLayers }: Basis) =>
    [...root.layers.map((layer) => layer.dir), ...root.binds.flatMap((bind) => bind.layers), ...workspaceLayers].some((layer) =>
      layer.startsWith(dir),
    );
  const { snapshots } = await listSnapshots(oci);
  if (snapshots.some((snapshot) => snapshot.id !== options.except && uses(snapshot.basis))) return true;
  const { records } = await oci.store.list();
  return records.some(({ details }) => {
    const parsed = z.object({ basis: Basis }).safeParse(details);
    return parsed.success && uses(parsed.data.basis);
  });
}

/**
 * Removes a snapshot: at once for everybody who looks, then its files. What a crash leaves is for the next sweep.
 * Idempotent.
 */
export async function removeSnapshotFiles(oci: OciContext, id: SnapshotId): Promise<void> {
  const gone = join(oci.context.stateDir, "snapshots", `${GONE_PREFIX}${id}`);
  await rename(snapshotDir(oci, id), gone).catch((error: unknown) => {
    if (!isErrno(error, "ENOENT")) throw error;
  });
  await removeFiles(oci, [gone]);
}
