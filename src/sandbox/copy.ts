import { constants } from "node:fs";
import { type FileHandle, lstat, mkdir, open, rename, rm, statfs } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { CaissonError } from "../contract/error/error.ts";
import { ifErrno, ignore, isErrno, UNREACHABLE } from "../lib/failures.ts";
import { showBytes } from "../lib/quantity.ts";
import type { Sandbox } from "./sandbox.ts";
import { packFolder } from "./tar/pack-folder.ts";
import { UNPACKED_BYTES_MAX, type Unpacked, unpackFolder } from "./tar/unpack-folder.ts";

const READ_BYTES = 262_144;
/** The disk space that a copy leaves free. */
const FREE_BYTES_MIN = 64 * 1024 * 1024;

export interface Copied {
  files: number;
  bytes: number;
  /** The entries that were skipped, and why. */
  skipped: { name: string; reason: string }[];
}

/**
 * Copies a host file or folder into a sandbox, like `cp -r`. A folder's content goes into the folder `to`, which is
 * created if needed; a file becomes `to`, or goes into it if `to` is a folder or ends in `/`. Links inside a folder are
 * copied as links. Throws `not_found`, `denied`, and what `tarIn` and `writeFile` throw.
 */
export async function copyIn(
  sandbox: Sandbox,
  from: string,
  to: string,
  options: { user?: string; exclude?: readonly string[] } = {},
): Promise<Copied> {
  const { exclude, ...asUser } = options;
  const file = await openForReading(from);
  if (file === null) {
    const skipped: Copied["skipped"] = [];
    const archive = packFolder(from, { ...(exclude && { exclude }), onSkipped: (name, reason) => skipped.push({ name, reason }) });
    const { entries, bytes } = await sandbox.tarIn(to, archive, asUser);
    return { files: entries, bytes, skipped };
  }
  try {
    const target = await insideOf(sandbox, to, basename(from), asUser);
    const { mode } = await file.stat();
    const { bytes } = await sandbox.writeFile(target, contentOf(file), { ...asUser, mode: mode & 0o777 });
    return { files: 1, bytes, skipped: [] };
  } finally {
    await file.close();
  }
}

/**
 * Copies a file or folder out of a sandbox. The sandbox is not trusted: nothing is written outside `to`, no link is
 * followed, and links that lead out of `to` are skipped and reported. A folder's content goes into the folder `to`,
 * which is created if needed; a file becomes `to`, or goes into it if `to` is a folder or ends in `/`. Limited by
 * `bytesMax` (16 GiB) and by the free disk space. Names that are not UTF-8 are skipped and reported. Throws what
 * `tarOut` and `readFile` throw, `unsafe`, `too_large`, `no_space`.
 */
export async function copyOut(
  sandbox: Sandbox,
  from: string,
  to: string,
  options: { user?: string; exclude?: readonly string[]; bytesMax?: number; entriesMax?: number } = {},
): Promise<Copied> {
  const { exclude, bytesMax, entriesMax, ...asUser } = options;
  const { kind, mode, sizeBytes } = await sandbox.stat(from, { ...asUser, follow: true });
  if (kind === "directory") {
    await mkdir(to, { recursive: true });
    const bounds = await boundsOf(to, bytesMax);
    const archive = await sandbox.tarOut(from, { ...asUser, ...(exclude && { exclude }), ...(bytesMax !== undefined && { bytesMax }) });
    return copiedOf(
      await unpackFolder(to, archive, {
        bytesMax: bounds.bytesMax,
        limitError: () => bounds.limitError(from),
        ...(entriesMax !== undefined && { entriesMax }),
      }),
    );
  }
  const target = to.endsWith("/") || (await isFolder(to)) ? join(to, basename(from)) : to;
  const bounds = await boundsOf(dirname(target), bytesMax);
  // A sparse file can have any size and take no space inside, but its copy would.
  if (sizeBytes > bounds.bytesMax) throw bounds.limitError(from, sizeBytes);
  const bytes = await writeReplacing(target, await sandbox.readFile(from, asUser), { mode: mode & 0o777, bounds: { ...bounds, from } });
  return { files: 1, bytes, skipped: [] };
}

interface Bounds {
  bytesMax: number;
  limitError(from: string, sizeBytes?: number): CaissonError;
}

/** Returns the limit for writing into a folder: the caller's limit or the free disk space, whichever is smaller. */
async function boundsOf(folder: string, bytesMax = UNPACKED_BYTES_MAX): Promise<Bounds> {
  const disk = (await ignore(statfs(folder), "without the free space, only the caller's limit applies")) ?? null;
  const room = disk === null ? bytesMax : Math.max(0, disk.bavail * disk.bsize - FREE_BYTES_MIN);
  const what = (from: string, sizeBytes?: number) =>
    sizeBytes === undefined ? `${from} is larger than` : `${from} is ${showBytes(sizeBytes)},`;
  if (room < bytesMax)
    return {
      bytesMax: room,
      limitError: (from, sizeBytes) =>
        new CaissonError(
          "no_space",
          `${what(from, sizeBytes)} ${sizeBytes === undefined ? "" : "more than "}the ${showBytes(room)} available in ${folder}`,
          {
            hint: "Free some space, or copy to another disk.",
          },
        ),
    };
  return {
    bytesMax: bytesMax,
    limitError: (from, sizeBytes) =>
      new CaissonError(
        "too_large",
        `${what(from, sizeBytes)} ${sizeBytes === undefined ? "" : "more than "}the limit of ${showBytes(bytesMax)}`,
        {
          hint: "Raise the limit with --max-size.",
        },
      ),
  };
}

function copiedOf({ entries, bytes, skipped }: Unpacked): Copied {
  return { files: entries - skipped.length, bytes, skipped };
}

/** Opens a file, or returns null for a folder. Opens without blocking, because a FIFO would otherwise hang. */
async function openForReading(path: string): Promise<FileHandle | null> {
  let file: FileHandle;
  try {
    file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK);
  } catch (error) {
    if (isErrno(error, "ENOENT")) throw new CaissonError("not_found", `there is no ${path} on this machine`, { cause: error });
    throw new CaissonError("denied", `${path} cannot be read`, { cause: error });
  }
  const stats = await file.stat();
  if (stats.isFile()) return file;
  await file.close();
  if (stats.isDirectory()) return null;
  throw new CaissonError("unsupported", `${path} is neither a file nor a folder`);
}

async function* contentOf(file: FileHandle): AsyncGenerator<Buffer> {
  while (true) {
    const buffer = Buffer.allocUnsafe(READ_BYTES);
    const { bytesRead } = await file.read(buffer, 0, READ_BYTES);
    if (bytesRead === 0) return;
    yield buffer.subarray(0, bytesRead);
  }
}

async function insideOf(sandbox: Sandbox, to: string, name: string, asUser: { user?: string }): Promise<string> {
  if (to.endsWith("/")) return `${to}${name}`;
  try {
    return (await sandbox.stat(to, { ...asUser, follow: true })).kind === "directory" ? `${to}/${name}` : to;
  } catch (error) {
    if (error instanceof CaissonError && error.code === "not_found") return to;
    throw error;
  }
}

async function isFolder(path: string): Promise<boolean> {
  // A folder that this user cannot enter is reported when the file is written.
  return (await ifErrno(lstat(path), UNREACHABLE, null))?.isDirectory() ?? false;
}

/**
 * Writes a temporary file beside the target and renames it, which replaces a link at the target instead of following
 * it.
 */
async function writeReplacing(
  target: string,
  content: AsyncIterable<Uint8Array>,
  options: { mode: number; bounds: Bounds & { from: string } },
): Promise<number> {
  const temporary = join(dirname(target), `.${basename(target).slice(0, 100)}.${process.pid}.${Date.now().toString(36)}`);
  const file = await open(temporary, constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW, 0o600).catch(
    (cause: unknown) => {
      throw new CaissonError(isErrno(cause, "ENOENT") ? "not_found" : "denied", `${target} cannot be written`, { cause });
    },
  );
  let bytes = 0;
  try {
    try {
      for await (const piece of content) {
        bytes += piece.length;
        if (bytes > options.bounds.bytesMax) throw options.bounds.limitError(options.bounds.from);
        for (let at = 0; at < piece.length; ) at += (await file.write(piece, at)).bytesWritten;
      }
      await file.chmod(options.mode);
    } finally {
      await file.close();
    }
    await rename(temporary, target);
  } catch (error) {
    await rm(temporary, { force: true });
    if (error instanceof CaissonError) throw error;
    throw new CaissonError(isErrno(error, "ENOSPC") ? "no_space" : "internal", `${target} cannot be written`, { cause: error });
  }
  return bytes;
}
