import {
  chmodSync,
  closeSync,
  constants,
  fchmodSync,
  fchownSync,
  futimesSync,
  lchownSync,
  linkSync,
  lstatSync,
  lutimesSync,
  mkdirSync,
  openSync,
  readdirSync,
  rmSync,
  type Stats,
  symlinkSync,
  unlinkSync,
  utimesSync,
  writeSync,
} from "node:fs";
import { CaissonError } from "../../../contract/error/error.ts";
import { type RawTarEntry, readRawTar } from "../../../sandbox/tar/tar-reader.ts";
import { resolveInRoot } from "./resolve-in-root.ts";

/** A sandbox has ids 0 to 65,535. Files of other ids in an image get the id 65,534. */
const IDS_MAX = 65_535;
const NOBODY = 65_534;
const WHITEOUT = ".wh.";
const OPAQUE = ".wh..wh..opq";

export interface UnpackOptions {
  /** An empty folder that no other process can reach. */
  target: string;
  /** Whether to set the image's ids on disk, which requires root on the host or in a user namespace. */
  keepOwners: boolean;
  bytesMax: number;
  entriesMax: number;
}

export interface LayerUnpacker {
  /**
   * Puts a layer on top of those before it. Never writes outside the target: links in the way are resolved inside it.
   * Leaves out devices and FIFOs, and drops setuid and setgid bits and extended attributes. Throws `unsafe`, `invalid`,
   * `too_large`, `no_space`.
   */
  add(layer: AsyncIterable<Uint8Array>): Promise<void>;
  readonly counts: { entries: number; bytes: number; leftOut: number };
}

/**
 * Creates an unpacker for a separate process, with synchronous file operations: a layer has tens of thousands of
 * small ones, and each costs ten times as much through the thread pool. The target belongs to that process alone, so
 * that what `lstat` reports is still true at the next call.
 */
export function createLayerUnpacker(options: UnpackOptions): LayerUnpacker {
  const counts = { entries: 0, bytes: 0, leftOut: 0 };
  return {
    counts,
    async add(layer) {
      const state: LayerState = { ...options, counts, written: new Set(), folders: new Map(), parents: new Map() };
      for await (const entry of readRawTar(layer, { drain: true })) {
        counts.entries += 1;
        if (counts.entries > options.entriesMax) throw tooLarge(`more than ${options.entriesMax} entries`);
        counts.bytes += entry.size;
        if (counts.bytes > options.bytesMax) throw tooLarge(`more than ${options.bytesMax} bytes`);
        await apply(state, entry);
      }
      finishFolders(state);
    },
  };
}

interface LayerState extends UnpackOptions {
  counts: { entries: number; bytes: number; leftOut: number };
  /** Paths that this layer created, to which its own whiteouts do not apply. */
  written: Set<string>;
  /** Folders whose modes and owners are set last: a read-only folder must be filled first. */
  folders: Map<string, RawTarEntry>;
  /** Folders by their name in the archive, so that each is resolved once. */
  parents: Map<string, string>;
}

async function apply(state: LayerState, entry: RawTarEntry): Promise<void> {
  const parts = entry.name.split("/").filter((part) => part !== "" && part !== ".");
  if (parts.includes("..")) throw unsafe(entry.name, "leads upwards");
  const last = parts.pop();
  if (last === undefined) {
    if (entry.kind !== "folder") throw unsafe(entry.name, "replaces the root folder");
    state.folders.set("", entry);
    return;
  }
  const parent = parentOf(state, parts);
  if (last.startsWith(WHITEOUT)) {
    whiteOut(state, parent, last, entry.name);
    return;
  }
  const path = `${parent}/${last}`;
  const existing = stat(state, path);
  if (entry.kind === "device" || entry.kind === "fifo") {
    if (existing !== undefined) removeExisting(state, path, existing);
    state.counts.leftOut += 1;
    return;
  }
  if (existing !== undefined && !(entry.kind === "folder" && existing.isDirectory())) removeExisting(state, path, existing);
  for (let current = path; current !== "" && !state.written.has(current); current = current.slice(0, current.lastIndexOf("/")))
    state.written.add(current);
  if (entry.kind === "folder") {
    if (existing?.isDirectory() !== true) mkdirSync(onDisk(state, path), 0o700);
    state.folders.set(path, entry);
  } else if (entry.kind === "link") {
    if (entry.linkName === "") throw unsafe(entry.name, "is a link without a target");
    symlinkSync(Buffer.from(entry.linkName, "latin1"), onDisk(state, path));
    if (state.keepOwners) lchownSync(onDisk(state, path), id(entry.uid), id(entry.gid));
    lutimesSync(onDisk(state, path), entry.modifiedMs / 1000, entry.modifiedMs / 1000);
  } else if (entry.kind === "hardLink") {
    hardLink(state, entry, path);
  } else {
    await writeFile(state, entry, path);
  }
}

function hardLink(state: LayerState, entry: RawTarEntry, path: string): void {
  const parts = entry.linkName.split("/").filter((part) => part !== "" && part !== ".");
  const last = parts.pop();
  if (last === undefined || last === ".." || parts.includes("..")) throw unsafe(entry.name, "is a hard link that leads upwards");
  const original = `${parentOf(state, parts)}/${last}`;
  const found = stat(state, original);
  // link(2) does not follow a final link, and everything in the target came from the archive.
  if (found === undefined || found.isDirectory()) throw unsafe(entry.name, "is a hard link to nothing in the image");
  linkSync(onDisk(state, original), onDisk(state, path));
}

async function writeFile(state: LayerState, entry: RawTarEntry, path: string): Promise<void> {
  const { O_CREAT, O_EXCL, O_NOFOLLOW, O_WRONLY } = constants;
  const fd = openSync(onDisk(state, path), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0o600);
  try {
    for await (const chunk of entry.content) {
      for (let at = 0; at < chunk.length; ) at += writeSync(fd, chunk, at);
    }
    if (state.keepOwners) fchownSync(fd, id(entry.uid), id(entry.gid));
    fchmodSync(fd, entry.mode & 0o777);
    futimesSync(fd, entry.modifiedMs / 1000, entry.modifiedMs / 1000);
  } finally {
    closeSync(fd);
  }
}

/** `.wh.NAME` removes NAME of the layers below; the opaque whiteout removes everything that they had in this folder. */
function whiteOut(state: LayerState, parent: string, last: string, name: string): void {
  if (last === OPAQUE) {
    for (const child of readdirSync(onDisk(state, parent), { encoding: "latin1" })) {
      const path = `${parent}/${child}`;
      if (!state.written.has(path)) removeExisting(state, path, stat(state, path));
    }
    return;
  }
  if (last.startsWith(`${WHITEOUT}${WHITEOUT}`)) return; // metadata of a storage driver
  const removedName = last.slice(WHITEOUT.length);
  if (removedName === "" || removedName === "." || removedName === "..") throw unsafe(name, "removes what is not in the image");
  const path = `${parent}/${removedName}`;
  const existing = stat(state, path);
  if (existing !== undefined && !state.written.has(path)) removeExisting(state, path, existing);
}

/** Returns the real folder, inside the target, for a folder's name in the archive. Creates it if it is missing. */
function parentOf(state: LayerState, parts: string[]): string {
  const key = parts.join("/");
  const known = state.parents.get(key);
  if (known !== undefined) return known;
  const found = resolveInRoot(state.target, parts, {
    onMissing: (path) => mkdirSync(onDisk(state, path), 0o755),
  });
  if (found === null || (found !== "" && stat(state, found)?.isDirectory() !== true))
    throw unsafe(key, "is below something that is not a folder");
  state.parents.set(key, found);
  return found;
}

function removeExisting(state: LayerState, path: string, existing: Stats | undefined): void {
  if (existing?.isDirectory() === true) {
    rmSync(onDisk(state, path), { recursive: true, force: true });
    // A link may replace it next. Pending changes to folders below it would then take effect where the link leads.
    for (const folder of state.folders.keys()) if (folder === path || folder.startsWith(`${path}/`)) state.folders.delete(folder);
  } else unlinkSync(onDisk(state, path));
  // Names that were resolved through it may lead elsewhere now.
  if (existing?.isFile() !== true) state.parents.clear();
}

function finishFolders(state: LayerState): void {
  for (const [path, entry] of [...state.folders].reverse()) {
    if (path !== "" && stat(state, path)?.isDirectory() !== true) continue;
    const place = onDisk(state, path);
    if (state.keepOwners) lchownSync(place, id(entry.uid), id(entry.gid));
    chmodSync(place, entry.mode & 0o1777);
    utimesSync(place, entry.modifiedMs / 1000, entry.modifiedMs / 1000);
  }
}

function stat(state: LayerState, path: string): Stats | undefined {
  return lstatSync(onDisk(state, path), { throwIfNoEntry: false });
}

/** Paths within the target are bytes as latin1 text. The target itself is our own path. */
function onDisk(state: LayerState, path: string): Buffer {
  return Buffer.concat([Buffer.from(state.target), Buffer.from(path, "latin1")]);
}

const id = (value: number) => (value <= IDS_MAX ? value : NOBODY);

function unsafe(name: string, why: string): CaissonError {
  return new CaissonError("unsafe", `the image was refused: its entry ${JSON.stringify(name.slice(0, 200))} ${why}`);
}

function tooLarge(what: string): CaissonError {
  return new CaissonError("too_large", `the image was refused: it unpacks to ${what}`);
}
