import { isUtf8 } from "node:buffer";
import { constants, type Stats } from "node:fs";
import { type FileHandle, lstat, open, readdir, readlink } from "node:fs/promises";
import { basename, dirname } from "node:path";
import { CaissonError } from "../../contract/error/error.ts";
import { isErrno } from "../../lib/failures.ts";
import { childPath, openFolder, openFolderBelow } from "./safe-folder.ts";
import { encodeTarHeader, padding, type TarHeader, tarEnd } from "./tar-header.ts";

const READ_BYTES = 262_144;
const DEPTH_MAX = 200;

export interface PackOptions {
  /** Names to omit, at any depth. */
  exclude?: readonly string[];
  /** Paths to omit with everything below, relative to the folder. */
  excludePaths?: readonly string[];
  /** The owner of the entries in the archive. Absent: root. */
  owner?: { uid: number; gid: number };
  /** Called for skipped entries: those that are not a file, folder or link, and names that are not UTF-8. */
  onSkipped?: (name: string, reason: string) => void;
}

/**
 * Packs a host file or folder into a pax archive. A folder's entries are named relative to it; a file has its own name.
 * Links are stored as links and never followed, so nothing outside gets in. Throws `not_found`, `denied`.
 */
export async function* packFolder(path: string, options: PackOptions = {}): AsyncGenerator<Buffer, void, void> {
  const stats = await lstat(path).catch((error: unknown) => {
    throw toPackError(error, path);
  });
  const parent = await openFolder(stats.isDirectory() ? path : dirname(path)).catch((error: unknown) => {
    throw toPackError(error, path);
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
    throw toPackError(error, full);
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
    else options.onSkipped?.(full, "its link target is not UTF-8");
  } else if (stats.isFile()) yield* packFile(path, { ...header, kind: "file" });
  else options.onSkipped?.(full, "it is not a file, folder or link");
}

/**
 * Packs a file with the size that its header promises: a file that shrinks during packing is an error, a growing one is
 * truncated.
 */
async function* packFile(path: string, header: TarHeader): AsyncGenerator<Buffer, void, void> {
  let file: FileHandle;
  try {
    file = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  } catch (error) {
    throw toPackError(error, header.name);
  }
  try {
    const stats = await file.stat();
    if (!stats.isFile()) throw new CaissonError("unsafe", `${header.name} changed while it was being read`);
    yield encodeTarHeader({ ...header, sizeBytes: stats.size });
    for (let left = stats.size; left > 0; ) {
      const buffer = Buffer.allocUnsafe(Math.min(READ_BYTES, left));
      const { bytesRead } = await file.read(buffer, 0, buffer.length);
      if (bytesRead === 0) throw new CaissonError("conflict", `${header.name} shrank while it was being read`);
      left -= bytesRead;
      yield buffer.subarray(0, bytesRead);
    }
    const rest = padding(stats.size);
    if (rest.length > 0) yield rest;
  } finally {
    await file.close();
  }
}

function toPackError(error: unknown, path: string): CaissonError {
  if (error instanceof CaissonError) return error;
  if (isErrno(error, "ENOENT")) return new CaissonError("not_found", `there is no ${path}`, { cause: error });
  if (isErrno(error, "EACCES", "EPERM")) return new CaissonError("denied", `no permission to read ${path}`, { cause: error });
  if (isErrno(error, "ELOOP")) return new CaissonError("unsafe", `${path} became a link while it was being read`, { cause: error });
  return new CaissonError("internal", `${path} cannot be read`, { cause: error });
}
