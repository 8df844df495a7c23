import { constants } from "node:fs";
import { type FileHandle, open, readdir } from "node:fs/promises";
import { setImmediate as breathe } from "node:timers/promises";
import { CaissonError } from "../contract/error/error.ts";
import { isErrno } from "../lib/failures.ts";
import { lstatOrNull } from "../lib/paths.ts";
import type { FileInfo, Sandbox } from "../sandbox/sandbox.ts";
import type { LeftOut } from "./change.ts";
import { looksSame, walkLower } from "./compare-all.ts";
import type { FolderTree } from "./folder-tree.ts";
import { DEPTH_MAX, filesInside, GITS_OWN, isGitsOwn, listInside } from "./list-inside.ts";
import { UNNAMEABLE } from "./read-side.ts";

/** Folders that are compared in parallel at each depth. */
const FOLDERS_AT_ONCE = 8;

interface Looking {
  sandbox: Sandbox;
  lower: FolderTree;
  leftOut: LeftOut[];
  paths: Set<string>;
  /** When each name in the layers was created. */
  madeAtMs: Map<string, number>;
}

/**
 * Returns the paths where the workspace may differ from the folder below it. Looks only into folders that exist in a
 * layer: any other folder in an unmoved parent is unchanged. Opens the layers' entries relative to one another without
 * following links, because an agent that is still at work may plant one anywhere. Throws `ENOENT` if there is no layer.
 */
export async function compareLayers(options: {
  sandbox: Sandbox;
  lower: FolderTree;
  layers: readonly string[];
}): Promise<{ paths: string[]; leftOut: LeftOut[]; madeAtMs: (path: string) => number }> {
  const looking: Looking = { ...options, leftOut: [], paths: new Set(), madeAtMs: new Map() };
  await using top = await openFolders(options.layers);
  await visit("", top.folders, looking, 0);
  return { paths: [...looking.paths], leftOut: looking.leftOut, madeAtMs: (path) => nearest(looking.madeAtMs, path) };
}

/**
 * Returns the time for a path: its own, or that of the nearest parent, since a file may have been removed together with
 * its folder.
 */
function nearest(times: ReadonlyMap<string, number>, path: string): number {
  for (let at = path; at !== ""; at = at.includes("/") ? at.slice(0, at.lastIndexOf("/")) : "") {
    const time = times.get(at);
    if (time !== undefined) return time;
  }
  return Number.POSITIVE_INFINITY;
}

const openFolder = (path: string) => open(path, constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW);

/** Opens those of several folders that exist. Throws if none does, or if one cannot be opened. */
async function openFolders(paths: readonly string[]): Promise<{ folders: FileHandle[] } & AsyncDisposable> {
  const opened = await Promise.allSettled(paths.map(openFolder));
  const folders = opened.flatMap((result) => (result.status === "fulfilled" ? [result.value] : []));
  const close = async () => void (await Promise.all(folders.map((folder) => folder.close())));
  const failed = opened.find((result) => result.status === "rejected" && !isErrno(result.reason, "ENOENT", "ENOTDIR", "ELOOP"));
  const missing = folders.length === 0 ? opened.find((result) => result.status === "rejected") : undefined;
  const failure = failed ?? missing;
  if (failure?.status === "rejected") {
    await close();
    throw failure.reason;
  }
  return { folders, [Symbol.asyncDispose]: close };
}

const within = (folder: FileHandle, name: string) => `/proc/self/fd/${folder.fd}/${name}`;

interface Level {
  folder: string;
  layers: readonly FileHandle[];
  depth: number;
  touched: ReadonlySet<string>;
  inside: ReadonlyMap<string, FileInfo>;
  below: ReadonlyMap<string, "directory" | "other">;
}

async function visit(folder: string, layers: readonly FileHandle[], looking: Looking, depth: number): Promise<void> {
  if (depth > DEPTH_MAX) throw new CaissonError("too_large", `${folder} is nested deeper than ${DEPTH_MAX} folders`);
  const touched = new Set<string>();
  for (const layer of layers) {
    for (const name of await readdir(`/proc/self/fd/${layer.fd}`)) {
      touched.add(name);
      noteTime(within(layer, name), pathOf(folder, name), looking);
    }
  }
  const listed = await listInside(looking.sandbox, folder, { depth: 1, leftOut: looking.leftOut });
  const inside = new Map(listed.map((entry) => [entry.name, entry]));
  const level: Level = { folder, layers, depth, touched, inside, below: namesBelow(looking.lower, folder) };
  await addDeletedPaths(level, looking);
  const asBefore = await untouchedAsBefore(level, looking);
  const entries = [...inside];
  for (let at = 0; at < entries.length; at += FOLDERS_AT_ONCE) {
    const some = entries.slice(at, at + FOLDERS_AT_ONCE);
    await Promise.all(some.map(([name, entry]) => consider(name, entry, { ...level, asBefore }, looking)));
  }
}

/** A file in several layers was first copied into the lowest. */
function noteTime(at: string, path: string, { madeAtMs }: Looking): void {
  const found = lstatOrNull(at);
  if (found) madeAtMs.set(path, Math.min(found.birthtimeMs, madeAtMs.get(path) ?? Number.POSITIVE_INFINITY));
}

const pathOf = (folder: string, name: string) => (folder === "" ? name : `${folder}/${name}`);

async function addDeletedPaths({ folder, inside, below }: Level, looking: Looking): Promise<void> {
  for (const [name, kind] of below) {
    const now = inside.get(name);
    if (isGitsOwn(name) || (now && (now.kind === "directory") === (kind === "directory"))) continue;
    const path = pathOf(folder, name);
    for (const deletedPath of kind === "directory" ? await walkLower(looking.lower, path) : [path]) looking.paths.add(deletedPath);
  }
}

/**
 * Returns whether the names missing from the layer are unchanged. They are, unless another folder was moved here: an
 * overlay leaves the content of a moved folder in its old place, so at least one name looks different.
 */
async function untouchedAsBefore({ folder, touched, inside, below }: Level, looking: Looking): Promise<boolean> {
  let looked = 0;
  for (const [name, entry] of inside) {
    if (touched.has(name) || name.includes(UNNAMEABLE)) continue;
    const before = below.get(name);
    if (before === undefined || (before === "directory") !== (entry.kind === "directory")) return false;
    if (++looked % 1000 === 0) await breathe();
    if (!looksSame(looking.lower.stat(pathOf(folder, name)), entry)) return false;
  }
  return true;
}

async function consider(name: string, entry: FileInfo, level: Level & { asBefore: boolean }, looking: Looking): Promise<void> {
  const path = pathOf(level.folder, name);
  const touched = level.touched.has(name);
  if (name.includes(UNNAMEABLE)) {
    if (touched || !level.below.has(name)) looking.leftOut.push({ path, reason: "its name is not UTF-8" });
  } else if (isGitsOwn(name)) {
    if (touched) looking.leftOut.push({ path, reason: GITS_OWN });
  } else if (entry.kind !== "directory") {
    if (touched || !level.asBefore || level.below.get(name) !== "other") looking.paths.add(path);
  } else if (!level.asBefore || (!touched && level.below.get(name) !== "directory")) {
    await addAllPaths(path, looking);
    if (touched) await timesOf(path, level, name, looking);
  } else if (touched) {
    await using next = await openBelow(level.layers, name);
    if (next) await visit(path, next.folders, looking, level.depth + 1);
    else await addAllPaths(path, looking);
  }
}

const openBelow = (layers: readonly FileHandle[], name: string) => openFolders(layers.map((layer) => within(layer, name))).catch(ifClosed);

/** Without root, the layer may contain a folder that only the sandbox's user can open. */
function ifClosed(error: unknown): null {
  if (isErrno(error, "EACCES", "EPERM", "ENOENT", "ENOTDIR", "ELOOP")) return null;
  throw error;
}

async function addAllPaths(path: string, looking: Looking): Promise<void> {
  for (const file of await filesInside(looking.sandbox, path, looking.leftOut)) looking.paths.add(file);
  for (const file of await walkLower(looking.lower, path)) looking.paths.add(file);
}

async function timesOf(path: string, level: Pick<Level, "layers">, name: string, looking: Looking): Promise<void> {
  await using below = await openBelow(level.layers, name);
  if (!below) return;
  const folders = new Set<string>();
  for (const folder of below.folders) {
    for (const entry of await readdir(`/proc/self/fd/${folder.fd}`, { withFileTypes: true })) {
      noteTime(within(folder, entry.name), pathOf(path, entry.name), looking);
      if (entry.isDirectory()) folders.add(entry.name);
    }
  }
  for (const each of folders) await timesOf(pathOf(path, each), { layers: below.folders }, each, looking);
}

function namesBelow(lower: FolderTree, folder: string): Map<string, "directory" | "other"> {
  return new Map(lower.entries(folder).map((entry) => [entry.name, entry.isDirectory() ? "directory" : "other"]));
}
