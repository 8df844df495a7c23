import { createHash, randomBytes } from "node:crypto";
import { mkdir, open, readdir, rename, stat, unlink, utimes } from "node:fs/promises";
import { dirname, join } from "node:path";
import { CaissonError } from "../../contract/error/error.ts";
import { ABSENT, ifErrno, ignore, isErrno } from "../../lib/failures.ts";
import { createDiskShares, type DiskShares } from "../../sandbox/disk-shares.ts";
import { type CacheEntry, type CacheRecord, encodeRecord, openEntry, readExactly } from "./cache-entry.ts";
import { createCacheRoom } from "./cache-room.ts";

/**
 * A cache in a folder that many processes share. An entry is one file: written under a temporary name, synced and
 * renamed, so it exists completely or not at all. Its mtime is when the registry was last asked, its atime when it was
 * last used.
 */
export interface Cache {
  /** Returns the open entry, which the caller closes, or null if it is missing or incomplete. */
  find(key: string): Promise<CacheEntry | null>;
  /** Starts a draft. Throws `no_space`, `denied`. */
  begin(): Promise<Draft>;
  /** Notes that the registry has confirmed the entry. */
  confirm(key: string): Promise<void>;
  close(): Promise<void>;
}

/** Content that is not an entry yet. It is readable while it is written, and afterwards until it is closed. */
export interface Draft {
  readonly bytes: number;
  /** Throws `too_large`, `no_space`. */
  write(chunk: Buffer): Promise<void>;
  read(position: number, bytes: number): Promise<Buffer>;
  /** Makes it the entry of the record's key, replacing any other. */
  keep(record: Omit<CacheRecord, "bytes" | "listBytes">, list?: Buffer): Promise<void>;
  /** Idempotent. Removes a draft that was not kept. */
  close(): Promise<void>;
}

/** No package is larger. The largest known ones are about 3 GiB. */
const ENTRY_BYTES_MAX = 4 * 1024 ** 3;
/** How many bytes of one entry are written between two checks of the disk. */
const LOOK_BYTES = 4 * 1024 ** 2;
/** The minimum time between two recorded uses of an entry. Recording every use would cause one write for each read. */
const USE_NOTED_MS = 60 * 60_000;
/** No write takes this long, so the writer of an older file has died, even if we cannot check its pid here. */
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
    begin: () => beginDraft({ temporary, pathOf, room, entryBytesMax, closing, disk }).catch(rethrowAsCacheError),
    async confirm(key) {
      const at = new Date(now());
      await ignore(utimes(pathOf(key), at, at), "it may have been evicted just now");
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
  let isKept = false;
  let closed: Promise<void> | undefined;
  const close = async () => {
    room.release(bytes);
    // Closed first, so that removing the name frees the space at once.
    await handle.close();
    if (!isKept) await ignore(unlink(at), "the next sweep removes it");
  };
  return {
    get bytes() {
      return bytes;
    },
    async write(chunk) {
      if (bytes + chunk.length > entryBytesMax) throw new CaissonError("too_large", `a cache entry must not exceed ${entryBytesMax} bytes`);
      if (Math.floor(bytes / LOOK_BYTES) !== Math.floor((bytes + chunk.length) / LOOK_BYTES)) await disk.check("a package");
      room.reserve(chunk.length);
      await handle.appendFile(chunk).catch((error) => {
        room.release(chunk.length);
        return rethrowAsCacheError(error);
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
        isKept = true;
        room.addEntry(bytes + tail.length);
      } catch (error) {
        rethrowAsCacheError(error);
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
  /** Drafts that are being closed. */
  closing: Set<Promise<void>>;
  disk: DiskShares;
}

function rethrowAsCacheError(error: unknown): never {
  if (error instanceof CaissonError) throw error;
  const { code } = error as NodeJS.ErrnoException;
  const full = code === "ENOSPC" || code === "EDQUOT";
  throw new CaissonError(full ? "no_space" : "denied", full ? "the package cache's disk is full" : "cannot write to the package cache", {
    hint: "Free space in the folder of the package cache, or make it writable for the user who runs this.",
    cause: error,
  });
}

async function noteUse(path: string, { fetchedAtMs, usedAtMs }: CacheEntry, nowMs: number): Promise<void> {
  if (Math.abs(nowMs - usedAtMs) <= USE_NOTED_MS) return;
  const noting = utimes(path, new Date(nowMs), new Date(fetchedAtMs));
  await ignore(noting, "it may have been evicted just now; the open file is still valid");
}

/** Removes files that a killed process left half written. */
async function sweep(temporary: string, nowMs: number): Promise<void> {
  for (const name of await ifErrno(readdir(temporary), ABSENT, [])) {
    const path = join(temporary, name);
    const pid = Number(/^(\d+)-/.exec(name)?.[1] ?? 0);
    const written = await ifErrno(stat(path), ABSENT, null);
    const isOld = written !== null && nowMs - written.mtimeMs > TEMPORARY_AGE_MS;
    if (isOld || !isAlive(pid)) await ignore(unlink(path), "another process may have removed it");
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
