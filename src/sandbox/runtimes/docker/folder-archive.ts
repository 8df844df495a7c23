import { constants } from "node:fs";
import { type FileHandle, lstat, open, readdir, readlink } from "node:fs/promises";
import { join } from "node:path";
import { CaissonError } from "../../../contract/error.ts";
import { type TarFields, tarEnd, tarHeader, tarPadding } from "./tar-writer.ts";

const CHUNK = 256 * 1024;

export interface FolderArchiveOptions {
  /** Name of the folder in the archive. */
  into: string;
  /** Whose everything is inside. */
  uid: number;
  gid: number;
  /** Paths relative to the folder that are left out, with all below. */
  exclude: readonly string[];
  signal?: AbortSignal;
}

/**
 * A pax archive of a host folder: files, folders and links (as links); sockets, FIFOs and devices are left out. No link is followed.
 * A file that changes while it is read is padded or cut to the size it had. Throws `denied`, `cancelled`.
 */
export async function* folderArchive(folder: string, options: FolderArchiveOptions): AsyncGenerator<Buffer> {
  yield* entriesOf({ folder, relative: "", options, excluded: new Set(options.exclude) });
  yield tarEnd();
}

interface Place {
  folder: string;
  relative: string;
  options: FolderArchiveOptions;
  excluded: ReadonlySet<string>;
}

async function* entriesOf(place: Place): AsyncGenerator<Buffer> {
  const { folder, relative, options, excluded } = place;
  const here = join(folder, relative);
  for (const name of await reading(here, () => readdir(here))) {
    if (options.signal?.aborted) throw new CaissonError("cancelled", "putting the workspace in was given up");
    const path = relative === "" ? name : `${relative}/${name}`;
    if (excluded.has(path)) continue;
    const full = join(folder, path);
    const info = await lstat(full).catch(() => null);
    if (info === null) continue; // Removed since it was listed.
    const entry = { name: `${options.into}/${path}`, mode: info.mode & 0o777, mtimeMs: info.mtimeMs, uid: options.uid, gid: options.gid };
    if (info.isDirectory()) {
      yield tarHeader({ ...entry, kind: "directory" });
      yield* entriesOf({ ...place, relative: path });
    } else if (info.isSymbolicLink()) {
      yield tarHeader({ ...entry, kind: "link", linkTarget: await reading(full, () => readlink(full)) });
    } else if (info.isFile()) {
      yield* fileContent(full, entry);
    }
  }
}

type FileEntry = Omit<TarFields, "kind" | "size" | "linkTarget">;

async function* fileContent(path: string, entry: FileEntry): AsyncGenerator<Buffer> {
  const { O_RDONLY, O_NOFOLLOW, O_NONBLOCK } = constants;
  const handle = await reading(path, () => open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK));
  try {
    const info = await handle.stat();
    // It was a plain file a moment ago; a FIFO in its place is left out like any other.
    if (!info.isFile()) return;
    yield tarHeader({ ...entry, kind: "file", size: info.size });
    yield* exactly(handle, info.size);
  } finally {
    await handle.close();
  }
}

async function* exactly(handle: FileHandle, size: number): AsyncGenerator<Buffer> {
  let left = size;
  while (left > 0) {
    const { bytesRead, buffer } = await handle.read(Buffer.allocUnsafe(Math.min(CHUNK, left)), 0, Math.min(CHUNK, left), null);
    if (bytesRead === 0) break;
    left -= bytesRead;
    yield buffer.subarray(0, bytesRead);
  }
  for (; left > 0; left -= Math.min(CHUNK, left)) yield Buffer.alloc(Math.min(CHUNK, left));
  yield tarPadding(size);
}

async function reading<T>(path: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    throw new CaissonError("denied", `${path} of the workspace cannot be read`, {
      cause: error,
      hint: "Check its permissions, or leave it out with a denied path.",
    });
  }
}
