import { createHash, randomBytes } from "node:crypto";
import { mkdir, open, readdir, rename, stat, unlink, utimes } from "node:fs/promises";
import { dirname, join } from "node:path";
import { CaissonError } from "../../contract/error.ts";
import { isErrno } from "../../lib/is-errno.ts";
import { createDiskShares, type DiskShares } from "../../sandbox/disk-shares.ts";
import { type CacheEntry, type CacheRecord, encodeRecord, openEntry, readExactly } from "./cache-entry.ts";
import { createCacheRoom } from "./cache-room.ts";

/**
 * Things by their key, in a folder that many processes use at once. An entry is one file: written under a name of its
 * own, synced, and renamed, so it is there whole or not at all. Its mtime is when the registry was last asked, its
 * atime when it was last used.
 */
export interface Cache {
  /** The entry is open; the caller closes it. Null for what is not there or not whole. */
  find(key: string): Promise<CacheEntry | null>;
  /** A place to write. Throws `no_space`, `denied`. */
  begin(): Promise<Draft>;
  /** The registry said that the entry is still what it has. */
  confirm(key: string): Promise<void>;
  close(): Promise<void>;
}

/** Content that is not an entry yet. Readable while it is written, and afterwards until it is closed. */
export interface Draft {
  readonly bytes: number;
  /** Throws `too_large`, `no_space`. */
  write(chunk: Buffer): Promise<void>;
  read(position: number, bytes: number): Promise<Buffer>;
  /** Makes it the entry of the record's key, in the place of any other. */
  keep(record: Omit<CacheRecord, "bytes" | "listBytes">, list?: Buffer): Promise<void>;
  /** Idempotent. What was not kept is gone. */
  close(): Promise<void>;
}

/** No package is larger; the largest known are some 3 GiB. */
const ENTRY_BYTES_MAX = 4 * 1024 ** 3;
/** How many bytes of one entry are written between two checks of the disk. */
const LOOK_BYTES = 4 * 1024 ** 2;
/** Noting each use would write as often as it reads. */
const USE_NOTED_MS = 60 * 60_000;
/** Nobody writes one file for so long; its writer died where its process number means nothing here. */
const TEMPORARY_AGE_MS = 24 * 60 * 60_000;

export async function openCache(options: {
  folder: string;
  bytesMax: number;
  entryBytesMax?: number;
  now?: () => number;
  disk?: DiskShares;
}): Promise<Cache> {
  const { folder, bytesMax } = options;
  const now = options.now ?? Date.now;
  const entryBytesMax = Math.min(options.entryBytesMax ?? ENTRY_BYTES_MAX, Math.floor(bytesMax / 2));
  const entries = join(folder, "entries");
  const temporary = join(folder, "tmp");
  await mkdir(entries, { recursive: true, mode: 0o700 });
  await mkdir(temporary, { recursive: true, mode: 0o700 });
  await sweep(temporary, now());
  const room = createCacheRoom({ folder: entries, bytesMax });
  const disk = options.disk ?? createDiskShares({ stateDir: folder });
  const closing = new Set<Promise<void>>();
  const pathOf = (key: string) => {
    const name = createHash("sha256").update(key).digest("hex");
    return join(entries, name.slice(0, 2), name);
  };

  return {
    async find(key) {
      const path = pathOf(key);
      const entry = await openEntry(path, key);
      if (entry !== null) await noteUse(path, entry, now());
      return entry;
    },
    begin: () => beginDraft({ temporary, pathOf, room, entryBytesMax, closing, disk }).catch(asOurs),
    async confirm(key) {
      const at = new Date(now());
      await utimes(pathOf(key), at, at).catch(() => undefined);
    },
    async close() {
      await Promise.allSettled(closing);
      await room.close();
    },
  };
}

async function beginDraft({ temporary, pathOf, room, entryBytesMax, closing, disk }: DraftOptions): Promise<Draft> {
  await disk.check("a package");
  const at = join(temporary, `${process.pid}-${randomBytes(12).toString("hex")}`);
  const handle = await open(at, "wx+", 0o600);
  let bytes = 0;
  let kept = false;
  let closed: Promise<void> | undefined;
  const close = async () => {
    room.release(bytes);
    // In this order: what has no name any more takes no room either.
    await handle.close();
    if (!kept) await unlink(at).catch(() => undefined);
  };
  return {
    get bytes() {
      return bytes;
    },
    async write(chunk) {
      if (bytes + chunk.length > entryBytesMax)
        throw new CaissonError("too_large", `more than ${entryBytesMax} bytes are not kept in one entry`);
      if (Math.floor(bytes / LOOK_BYTES) !== Math.floor((bytes + chunk.length) / LOOK_BYTES)) await disk.check("a package");
      room.reserve(chunk.length);
      await handle.appendFile(chunk).catch((error) => {
        room.release(chunk.length);
        return asOurs(error);
      });
      bytes += chunk.length;
    },
    read: (position, length) => readExactly(handle, position, length),
    async keep(record, list = Buffer.alloc(0)) {
      try {
        const tail = Buffer.concat([list, encodeRecord({ ...record, bytes, listBytes: list.length })]);
        await handle.appendFile(tail);
        await handle.sync();
        const path = pathOf(record.key);
        await mkdir(dirname(path), { recursive: true, mode: 0o700 });
        await rename(at, path);
        kept = true;
        room.added(bytes + tail.length);
      } catch (error) {
        asOurs(error);
      }
    },
    close() {
      if (closed !== undefined) return closed;
      const ending = close().finally(() => closing.delete(ending));
      closing.add(ending);
      closed = ending;
      return ending;
    },
  };
}

interface DraftOptions {
  temporary: string;
  pathOf: (key: string) => string;
  room: ReturnType<typeof createCacheRoom>;
  entryBytesMax: number;
  /** Drafts that are about to be closed. */
  closing: Set<Promise<void>>;
  disk: DiskShares;
}

function asOurs(error: unknown): never {
  if (error instanceof CaissonError) throw error;
  const { code } = error as NodeJS.ErrnoException;
  const full = code === "ENOSPC" || code === "EDQUOT";
  throw new CaissonError(full ? "no_space" : "denied", full ? "the package cache's disk is full" : "the package cache cannot be written", {
    hint: "Make room in the folder of the package cache, or give it to the user who runs this.",
    cause: error,
  });
}

async function noteUse(path: string, { fetchedAtMs, usedAtMs }: CacheEntry, nowMs: number): Promise<void> {
  if (Math.abs(nowMs - usedAtMs) <= USE_NOTED_MS) return;
  // It may have been evicted just now; the open file is still good.
  await utimes(path, new Date(nowMs), new Date(fetchedAtMs)).catch(() => undefined);
}

/** What a process that was killed left half written. */
async function sweep(temporary: string, nowMs: number): Promise<void> {
  for (const name of await readdir(temporary).catch(() => [])) {
    const path = join(temporary, name);
    const pid = Number(/^(\d+)-/.exec(name)?.[1] ?? 0);
    const old = await stat(path).then(
      ({ mtimeMs }) => nowMs - mtimeMs > TEMPORARY_AGE_MS,
      () => false,
    );
    if (old || !isAlive(pid)) await unlink(path).catch(() => undefined);
  }
}

function isAlive(pid: number): boolean {
  if (pid === 0) return false;
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return isErrno(error, "EPERM");
  }
}
