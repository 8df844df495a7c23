import { existsSync } from "node:fs";
import { mkdir, readdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { z } from "zod";
import { CaissonError } from "../../../contract/error/error.ts";
import { ABSENT, ifErrno, jsonOrNull } from "../../../lib/failures.ts";
import { randomLetters } from "../../../lib/new-id.ts";
import { showBytes } from "../../../lib/quantity.ts";
import { createDiskShares } from "../../../sandbox/disk-shares.ts";
import type { TakenPoint } from "../../../sandbox/machine-points.ts";
import type { PlanRecord } from "../launch/launcher.ts";
import { removeFiles } from "../launch/launcher.ts";
import type { OciContext } from "../oci-context.ts";
import {
  chainOf,
  discardDraft,
  draftLayer,
  dropLayer,
  frozenDir,
  holdLayer,
  type LayerDraft,
  publishLayer,
  type ReferenceKind,
  shortenChain,
} from "./frozen-layers.ts";
import { MountedLayer } from "./mounted-layer.ts";
import type { Machine } from "./parts.ts";

/** What is stored next to a machine's writable layers. */
const MachineRecord = z.object({
  /** The frozen layers below the writable ones, topmost first. */
  base: z.array(MountedLayer),
  /** The newest point, and the folder that tells what the writable layers contained then. */
  last: z.object({ id: z.string(), index: z.string() }).nullable(),
  /** The base of a restore that has not finished, and an upper folder that is to replace the workspace's. */
  restoring: z.object({ base: z.array(MountedLayer), upper: z.string().nullable() }).nullable(),
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
  // A backup may lack the newest points.
  const hasLast = stored.last !== null && existsSync(frozenDir(oci, stored.last.id));
  const record = hasLast ? stored : { ...stored, last: null };
  const newest = record.last?.id ?? record.base[0]?.id ?? null;
  if (machine.parts.length === 0) return { id: newest, files: 0, bytes: 0, isNew: false };
  const draft = await draftLayer(oci);
  const index = `${INDEX_PREFIX}${randomLetters(8)}`;
  await mkdir(join(dir, index), { mode: 0o700 });
  try {
    const changes = await takeParts(oci, machine, { draft, record, index, bytesMax });
    if (!changes.hasChanged) {
      await discardDraft(oci, draft);
      await removeThere(oci, [join(dir, index)]);
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
    if (existsSync(draft.dir)) {
      await discardDraft(oci, draft);
      await removeThere(oci, [join(dir, index)]);
    }
    throw tooLarge(error);
  }
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
    await discardDraft(oci, taking.draft);
    await mkdir(taking.draft.parts, { recursive: true, mode: 0o700 });
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
  const before = record.last === null ? join(machine.dir, index) : join(machine.dir, record.last.index);
  const plan: PlanRecord[] = [
    ...(view.records.length === 0 ? oci.identity().plan : view.records),
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

async function removeIndexes(oci: OciContext, dir: string, except: string): Promise<void> {
  const names = (await readdir(dir)).filter((name) => name.startsWith(INDEX_PREFIX) && name !== except);
  await removeThere(
    oci,
    names.map((name) => join(dir, name)),
  );
}

/** Keeps a point until `removePoint`. */
export async function keepPoint(oci: OciContext, dir: string, id: string): Promise<void> {
  await mkdir(join(dir, POINTS), { recursive: true, mode: 0o700 });
  await writeFile(join(dir, POINTS, id), "", { mode: 0o600 });
  await holdLayer(oci, id, { kind: "point", holder: dir });
}

export async function removePoint(oci: OciContext, dir: string, id: string): Promise<void> {
  await dropLayer(oci, id, { kind: "point", holder: dir });
  await rm(join(dir, POINTS, id), { force: true });
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
  const base = await chainOf(oci, id);
  for (const layer of base) await holdLayer(oci, layer.id, { kind: "base", holder: dir });
  await writeMachine(oci, dir, { ...(await readMachine(dir)), restoring: { base, upper } });
  await finishRestore(oci, dir);
}

/** Completes a restore. Everything in the folder is either old, or named by the record. */
export async function finishRestore(oci: OciContext, dir: string): Promise<void> {
  const record = await readMachine(dir);
  const { restoring } = record;
  if (restoring !== null) {
    const isReplaced = restoring.upper !== null && !existsSync(join(dir, restoring.upper));
    for (const name of await readdir(dir)) {
      if (!/(?:^|-)(?:upper|work)$/.test(name) || (isReplaced && name === "upper")) continue;
      await rename(join(dir, name), join(dir, `${OLD_PREFIX}${randomLetters(8)}`));
    }
    if (restoring.upper !== null && !isReplaced) await rename(join(dir, restoring.upper), join(dir, "upper"));
    await writeMachine(oci, dir, { base: restoring.base, last: null, restoring: null });
    await release(oci, dir, { base: record.base.filter(({ id }) => !restoring.base.some((layer) => layer.id === id)), last: record.last });
  }
  // A restore of an earlier version was interrupted.
  else if (!existsSync(join(dir, "upper")) && existsSync(join(dir, OLD_NEXT))) await rename(join(dir, OLD_NEXT), join(dir, "upper"));
  const old = (await ifErrno(readdir(dir), ABSENT, [])).filter(
    (name) => name.startsWith(OLD_PREFIX) || (restoring && name.startsWith(INDEX_PREFIX)),
  );
  await removeThere(
    oci,
    old.map((name) => join(dir, name)),
  );
}

async function release(oci: OciContext, dir: string, { base, last }: Pick<MachineRecord, "base" | "last">): Promise<void> {
  for (const { id } of base) await dropLayer(oci, id, { kind: "base", holder: dir });
  if (last !== null) await dropLayer(oci, last.id, { kind: "last", holder: dir });
}

/** Fills a new machine with the files of a point. */
export async function startFrom(oci: OciContext, dir: string, id: string | null): Promise<void> {
  const base = await chainOf(oci, id);
  for (const layer of base) await holdLayer(oci, layer.id, { kind: "base", holder: dir });
  await writeMachine(oci, dir, { base, last: null, restoring: null });
}

/** Forgets everything that a machine's folder says about frozen layers. */
export async function releaseMachine(oci: OciContext, dir: string): Promise<void> {
  const record = await ifErrno(readMachine(dir), ABSENT, null);
  if (record === null) return;
  for (const id of await keptPoints(dir)) await removePoint(oci, dir, id);
  await release(oci, dir, record);
  for (const { id } of record.restoring?.base ?? []) await dropLayer(oci, id, { kind: "base", holder: dir });
  for (const name of [RECORD_NAME, VIEW_NAME, POINTS]) await rm(join(dir, name), { recursive: true, force: true });
  await removeIndexes(oci, dir, "");
}

/** Whether a machine's folder still uses a layer in the way that a reference says. */
export async function isMachineUsing(dir: string, kind: ReferenceKind, id: string): Promise<boolean> {
  if (!existsSync(dir)) return false;
  if (kind === "point") return existsSync(join(dir, POINTS, id));
  const record = await readMachine(dir);
  if (kind === "last") return record.last?.id === id;
  return [...record.base, ...(record.restoring?.base ?? [])].some((layer) => layer.id === id);
}

async function removeThere(oci: OciContext, paths: readonly string[]): Promise<void> {
  await removeFiles(
    oci,
    paths.filter((path) => existsSync(path)),
  );
}
