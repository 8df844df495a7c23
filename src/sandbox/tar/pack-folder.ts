import { isUtf8 } from "node:buffer";
import { constants, type Stats } from "node:fs";
import { type FileHandle, lstat, open, readdir, readlink } from "node:fs/promises";
import { basename, dirname } from "node:path";
import { CaissonError } from "../../contract/error.ts";
import { isErrno } from "../../lib/is-errno.ts";
import { childPath, openFolder, openFolderBelow } from "./safe-folder.ts";
import { encodeTarHeader, padding, type TarHeader, tarEnd } from "./tar-header.ts";

const READ_BYTES = 262_144;
const DEPTH_MAX = 200;

export interface PackOptions {
  /** Names, at any depth, that are left out. */
  exclude?: readonly string[];
  /** Paths relative to the folder that are left out, with all below. */
  excludePaths?: readonly string[];
  /** Whose the entries are in the archive; root's when absent. */
  owner?: { uid: number; gid: number };
  /** Entries that are neither file, folder nor link, or whose names are not UTF-8, are left out and told here. */
  onSkipped?: (name: string, reason: string) => void;
}

/**
 * A host file or folder as a pax archive. The entries of a folder are named relative to it; a file's is its own name.
 * Links are stored as links and never followed, so nothing outside comes in. Throws `not_found`, `denied`.
 */
export async function* packFolder(path: string, options: PackOptions = {}): AsyncGenerator<Buffer, void, void> {
  const stats = await lstat(path).catch((error: unknown) => {
    throw translated(error, path);
  });
  const parent = await openFolder(stats.isDirectory() ? path : dirname(path)).catch((error: unknown) => {
    throw translated(error, path);
  });
  try {
    if (stats.isDirectory()) yield* packChildren(parent, "", 0, options);
    else yield* packEntry(parent, basename(path), "", 0, options);
  } finally {
    await parent.close();
  }
  yield tarEnd;
}

async function* packChildren(folder: FileHandle, prefix: string, depth: number, options: PackOptions): AsyncGenerator<Buffer, void, void> {
  if (depth > DEPTH_MAX) throw new CaissonError("too_large", `${prefix} is nested deeper than ${DEPTH_MAX} folders`);
  const found = await readdir(`/proc/self/fd/${folder.fd}`, "buffer");
  for (const name of found) if (!isUtf8(name)) options.onSkipped?.(prefix + name.toString("utf8"), "its name is not UTF-8");
  const names = found.filter(isUtf8).map((name) => name.toString("utf8"));
  names.sort();
  for (const name of names) {
    if (options.exclude?.includes(name) || options.excludePaths?.includes(prefix + name)) continue;
    yield* packEntry(folder, name, prefix, depth, options);
  }
}

async function* packEntry(
  folder: FileHandle,
  name: string,
  prefix: string,
  depth: number,
  options: PackOptions,
): AsyncGenerator<Buffer, void, void> {
  const path = childPath(folder, name);
  const full = prefix + name;
  let stats: Stats;
  try {
    stats = await lstat(path);
  } catch (error) {
    if (isErrno(error, "ENOENT")) return;
    throw translated(error, full);
  }
  const described = { name: full, mode: stats.mode & 0o7777, modifiedMs: Math.floor(stats.mtimeMs), sizeBytes: 0, linkTarget: "" };
  const header = { ...described, ...(options.owner && { owner: options.owner }) };
  if (stats.isDirectory()) {
    yield encodeTarHeader({ ...header, kind: "directory" });
    const child = await openFolderBelow(folder, [name], { make: false });
    try {
      yield* packChildren(child, `${full}/`, depth + 1, options);
    } finally {
      await child.close();
    }
  } else if (stats.isSymbolicLink()) {
    const target = await readlink(path, "buffer");
    if (isUtf8(target)) yield encodeTarHeader({ ...header, kind: "link", linkTarget: target.toString("utf8") });
    else options.onSkipped?.(full, "what it leads to is not UTF-8");
  } else if (stats.isFile()) yield* packFile(path, { ...header, kind: "file" });
  else options.onSkipped?.(full, "it is neither file, folder nor link");
}

/** The size in the header is a promise: a file that shrinks meanwhile is an error, one that grows is cut. */
async function* packFile(path: string, header: TarHeader): AsyncGenerator<Buffer, void, void> {
  let file: FileHandle;
  try {
    file = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  } catch (error) {
    throw translated(error, header.name);
  }
  try {
    const stats = await file.stat();
    if (!stats.isFile()) throw new CaissonError("unsafe", `${header.name} changed while it was read`);
    yield encodeTarHeader({ ...header, sizeBytes: stats.size });
    for (let left = stats.size; left > 0; ) {
      const buffer = Buffer.allocUnsafe(Math.min(READ_BYTES, left));
      const { bytesRead } = await file.read(buffer, 0, buffer.length);
      if (bytesRead === 0) throw new CaissonError("conflict", `${header.name} became shorter while it was read`);
      left -= bytesRead;
      yield buffer.subarray(0, bytesRead);
    }
    const rest = padding(stats.size);
    if (rest.length > 0) yield rest;
  } finally {
    await file.close();
  }
}

function translated(error: unknown, path: string): CaissonError {
  if (error instanceof CaissonError) return error;
  if (isErrno(error, "ENOENT")) return new CaissonError("not_found", `there is no ${path}`, { cause: error });
  if (isErrno(error, "EACCES", "EPERM")) return new CaissonError("denied", `${path} may not be read`, { cause: error });
  if (isErrno(error, "ELOOP")) return new CaissonError("unsafe", `${path} became a link while it was read`, { cause: error });
  return new CaissonError("internal", `${path} cannot be read`, { cause: error });
}
