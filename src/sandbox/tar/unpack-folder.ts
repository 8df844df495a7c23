import { constants } from "node:fs";
import { type FileHandle, link, mkdir, open, rmdir, symlink, unlink } from "node:fs/promises";
import { CaissonError } from "../../contract/error/error.ts";
import { isErrno } from "../../lib/failures.ts";
import type { Bytes } from "../sandbox.ts";
import { readTar, type TarEntry } from "./read-tar.ts";
import { childPath, ignoring, openFolder, openFolderBelow, safeComponents } from "./safe-folder.ts";

export const UNPACKED_BYTES_MAX = 16 * 1024 ** 3;
const ENTRIES_MAX = 1_000_000;
/** The replacement for bytes that are not UTF-8. */
const UNNAMEABLE = "\ufffd";

export interface UnpackOptions {
  bytesMax?: number;
  /** Returns the error to throw beyond `bytesMax`. Absent: `too_large`. */
  limitError?: () => CaissonError;
  entriesMax?: number;
  /** Reads past the archive's end, for callers that count or hash the source. Only for a source of limited size. */
  drain?: boolean;
  /** Moves an entry to another path below the folder; null omits it. */
  rename?: (components: string[]) => string[] | null;
}

export interface Unpacked {
  entries: number;
  bytes: number;
  /** Links that lead out of the folder, and names that are not UTF-8: they are not created. */
  skipped: { name: string; reason: string }[];
}

/**
 * Unpacks an untrusted archive into an existing host folder. Nothing is written outside it, and no link is followed,
 * neither from the archive nor an existing one. Devices and FIFOs, names with `..`, and hard links to anything but
 * files of the same archive are `unsafe`. Set-id bits and owners are dropped. Links that would lead out are skipped and
 * reported. Throws `too_large` beyond a limit; entries that were already unpacked remain.
 */
export async function unpackFolder(folder: string, archive: Bytes, options: UnpackOptions = {}): Promise<Unpacked> {
  const { bytesMax = UNPACKED_BYTES_MAX, entriesMax = ENTRIES_MAX, rename } = options;
  const result: Unpacked = { entries: 0, bytes: 0, skipped: [] };
  const files = new Set<string>();
  const root = await openFolder(folder);
  try {
    for await (const entry of readTar(archive, { drain: options.drain === true })) {
      result.entries += 1;
      if (result.entries > entriesMax) throw new CaissonError("too_large", `the archive has more than ${entriesMax} entries`);
      if (entry.kind === "file") result.bytes += entry.sizeBytes;
      if (result.bytes > bytesMax)
        throw options.limitError?.() ?? new CaissonError("too_large", `the archive unpacks to more than ${bytesMax} bytes`);
      if (entry.name.includes(UNNAMEABLE) || entry.linkTarget.includes(UNNAMEABLE)) {
        // Several such names would become the same name.
        result.skipped.push({
          name: entry.name,
          reason: entry.name.includes(UNNAMEABLE) ? "its name is not UTF-8" : "its link target is not UTF-8",
        });
        continue;
      }
      const originalComponents = safeComponents(entry.name);
      const components = rename === undefined ? originalComponents : rename(originalComponents);
      if (components === null) continue;
      if (components.length === 0) continue;
      await unpackEntry({ root, entry, components, files, result, rename });
    }
  } finally {
    await root.close();
  }
  return result;
}

interface Step {
  root: FileHandle;
  entry: TarEntry;
  components: string[];
  files: Set<string>;
  result: Unpacked;
  rename: UnpackOptions["rename"];
}

async function unpackEntry({ root, entry, components, files, result, rename }: Step): Promise<void> {
  const name = components.at(-1) as string;
  const parents = components.slice(0, -1);
  const parent = await openFolderBelow(root, parents, { make: true });
  try {
    const path = childPath(parent, name);
    switch (entry.kind) {
      case "directory":
        await mkdir(path).catch(ignoring("EEXIST"));
        await setFolderMode(parent, name, entry.mode);
        return;
      case "file":
        await clear(path);
        await writeContent(path, entry);
        files.add(components.join("/"));
        return;
      case "link": {
        if (!staysInside(entry.linkTarget, parents.length)) {
          result.skipped.push({ name: entry.name, reason: `it is a link to ${entry.linkTarget}` });
          return;
        }
        await clear(path);
        await symlink(entry.linkTarget, path);
        files.delete(components.join("/"));
        return;
      }
      case "hardLink": {
        const originalTarget = safeComponents(entry.linkTarget);
        const target = rename === undefined ? originalTarget : (rename(originalTarget) ?? []);
        if (!files.has(target.join("/")))
          throw new CaissonError("unsafe", `${JSON.stringify(entry.name)} is a hard link to a file that is not in the archive`);
        await makeHardLink(root, target, path);
        files.add(components.join("/"));
        return;
      }
    }
  } finally {
    if (parent !== root) await parent.close();
  }
}

/**
 * Whether a link target stays below the folder even if its own links are followed: it may go up first, at most to the
 * folder itself, and then only down. `..` after a name could climb out through another link.
 */
function staysInside(target: string, depth: number): boolean {
  if (target === "" || target.startsWith("/") || target.includes("\0")) return false;
  const parts = target.split("/").filter((part) => part !== "" && part !== ".");
  const down = parts.findIndex((part) => part !== "..");
  const ups = down < 0 ? parts.length : down;
  return ups <= depth && !parts.slice(ups).includes("..");
}

async function writeContent(path: string, entry: TarEntry): Promise<void> {
  const flags = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW;
  const file = await open(path, flags, 0o600);
  try {
    for await (const piece of entry.content) {
      for (let at = 0; at < piece.length; ) at += (await file.write(piece, at)).bytesWritten;
    }
    await file.chmod(entry.mode & 0o777);
    await file.utimes(entry.modifiedMs / 1000, entry.modifiedMs / 1000);
  } catch (error) {
    throw isErrno(error, "ENOSPC") ? new CaissonError("no_space", `there is no space for ${entry.name}`, { cause: error }) : error;
  } finally {
    await file.close();
  }
}

/** Clears the way: removes a file, a link or an empty folder. A folder that is not empty is the caller's error. */
async function clear(path: string): Promise<void> {
  try {
    await unlink(path);
  } catch (error) {
    if (isErrno(error, "ENOENT")) return;
    if (!isErrno(error, "EISDIR", "EPERM")) throw error;
    await rmdir(path).catch((cause: unknown) => {
      throw new CaissonError("exists", "a folder exists where a file must be written", { cause });
    });
  }
}

async function makeHardLink(root: FileHandle, target: string[], path: string): Promise<void> {
  const folder = await openFolderBelow(root, target.slice(0, -1), { make: false });
  try {
    await clear(path);
    await link(childPath(folder, target.at(-1) as string), path);
  } finally {
    if (folder !== root) await folder.close();
  }
}

async function setFolderMode(parent: FileHandle, name: string, mode: number): Promise<void> {
  const folder = await openFolderBelow(parent, [name], { make: false });
  try {
    // The owner keeps access; otherwise later entries could not be unpacked.
    await folder.chmod((mode & 0o777) | 0o700);
  } finally {
    await folder.close();
  }
}
