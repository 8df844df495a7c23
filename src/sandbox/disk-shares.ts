import { lstat, readdir, readFile, statfs } from "node:fs/promises";
import { dirname, join } from "node:path";
import { CaissonError } from "../contract/error/error.ts";
import { LOCAL_OWNER } from "../contract/token/owner.ts";
import { ABSENT, ifErrno, isErrno, jsonOrNull, UNREACHABLE } from "../lib/failures.ts";
import { showBytes } from "../lib/quantity.ts";

const MIB = 1024 ** 2;
/** The reserve as a fraction of the file system, within these bounds. The guest uses the same values. */
const RESERVE_PARTS = 20;
const RESERVE_BYTES_MIN = 256 * MIB;
const RESERVE_BYTES_MAX = 10_240 * MIB;
/** On a small file system, the reserve is at most this fraction. */
const RESERVE_PARTS_MIN = 4;
/** One owner's share, as a fraction of the file system. */
const OWNER_PARTS = 4;
/** How often the disk is checked during a write, in time and in bytes. */
const LOOK_MS = 100;
const LOOK_BYTES = 4 * MIB;
/** How often the folder that a program fills is measured. */
const MEASURE_MS = 1000;

/** The file in a mirror's folder that records its owner and size. */
export const OWNED_NAME = "caisson-owned.json";

export interface DiskSharesOptions {
  stateDir: string;
  /**
   * The space that stays free for the station itself. Absent: a twentieth of the file system, from 256 MiB to 10 GiB.
   */
  reserveBytes?: number | undefined;
  /** The storage limit of one owner: uploads, mirrors, images and snapshots. Absent: a quarter of the file system. */
  bytesPerOwnerMax?: number | undefined;
  /** Returns the size of a folder's file system; tests replace it. */
  look?: (folder: string) => Promise<{ totalBytes: number; freeBytes: number }>;
}

/** A write on behalf of a caller. */
export interface DiskWrite {
  /** Aborted when the space runs out, which stops programs that write on their own. */
  signal: AbortSignal;
  /** Counts bytes that are about to be written. Throws `no_space`. */
  add(bytes: number): Promise<void>;
}

export interface WriteOptions {
  /** The thing that is written, as a noun phrase: `the upload`. */
  what: string;
  /** The owner whose share it counts against. Absent for temporary data and for data with its own limit. */
  owner?: string | undefined;
  signal?: AbortSignal | undefined;
  /** A folder that a program fills; its size counts. */
  measured?: string;
}

/** The disk of the state folder: the station's reserve and each owner's share. */
export interface DiskShares {
  /**
   * Runs `work`, which writes. Throws `no_space`, up front or during the work, if the reserve or the owner's share is
   * reached; the caller removes what has been written.
   */
  write<Result>(options: WriteOptions, work: (write: DiskWrite) => Promise<Result>): Promise<Result>;
  /** Checks once, before something small is written. Throws `no_space`. */
  check(what: string): Promise<void>;
  /** Returns how many bytes an owner may still store. */
  countBytesLeft(owner: string): Promise<number>;
}

interface Active {
  owner: string | undefined;
  bytes: number;
}

export function createDiskShares(options: DiskSharesOptions): DiskShares {
  const { stateDir, look = diskOf } = options;
  const active = new Set<Active>();
  const room = async () => {
    const { totalBytes, freeBytes } = await look(stateDir);
    const reserveBytes = options.reserveBytes ?? reserveOf(totalBytes);
    const bytesPerOwnerMax = options.bytesPerOwnerMax ?? Math.floor(totalBytes / OWNER_PARTS);
    return { freeBytes, reserveBytes, bytesPerOwnerMax };
  };
  const underWay = (owner: string) => [...active].reduce((sum, each) => sum + (each.owner === owner ? each.bytes : 0), 0);
  const check = async ({ what, owner }: WriteOptions, storedBytes: number) => {
    const { freeBytes, reserveBytes, bytesPerOwnerMax } = await room();
    if (freeBytes <= reserveBytes) throw noRoom(what, { freeBytes, reserveBytes });
    if (isBounded(owner) && storedBytes + underWay(owner) > bytesPerOwnerMax) throw noShare(what, { owner, bytesPerOwnerMax });
  };
  return {
    check: (what) => check({ what }, 0),
    async countBytesLeft(owner) {
      if (!isBounded(owner)) return Number.MAX_SAFE_INTEGER;
      return Math.max(0, (await room()).bytesPerOwnerMax - (await keptBytes(stateDir, owner)) - underWay(owner));
    },
    async write(request, work) {
      const storedBytes = isBounded(request.owner) ? await keptBytes(stateDir, request.owner) : 0;
      await check(request, storedBytes);
      const entry: Active = { owner: request.owner, bytes: 0 };
      active.add(entry);
      const ending = new AbortController();
      let why: CaissonError | undefined;
      const watch = watching(async (turn) => {
        if (request.measured !== undefined && turn % (MEASURE_MS / LOOK_MS) === 0) entry.bytes = await folderBytes(request.measured);
        await check(request, storedBytes);
      }, endWith);
      function endWith(error: unknown): void {
        if (!(error instanceof CaissonError)) return;
        why = error;
        ending.abort(error);
      }
      let unlooked = 0;
      const add = async (bytes: number) => {
        entry.bytes += bytes;
        unlooked += bytes;
        if (unlooked < LOOK_BYTES) return;
        unlooked = 0;
        await check(request, storedBytes);
      };
      try {
        const signal = request.signal === undefined ? ending.signal : AbortSignal.any([request.signal, ending.signal]);
        const result = await work({ signal, add });
        // Bytes since the last check count too.
        if (unlooked > 0 || request.measured !== undefined) await check(request, storedBytes);
        return result;
      } catch (error) {
        throw why ?? error;
      } finally {
        watch.stop();
        active.delete(entry);
      }
    },
  };
}

/** The machine's own user has no share: it is their disk. The reserve applies to everyone. */
const isBounded = (owner: string | undefined): owner is string => owner !== undefined && owner !== LOCAL_OWNER;

function watching(look: (turn: number) => Promise<void>, onError: (error: unknown) => void): { stop(): void } {
  let turn = 0;
  let timer: NodeJS.Timeout | undefined;
  let isOver = false;
  const next = () => {
    if (!isOver) timer = setTimeout(() => void again(), LOOK_MS).unref();
  };
  const again = async () => {
    turn += 1;
    await look(turn).catch(onError);
    next();
  };
  next();
  return {
    stop() {
      isOver = true;
      clearTimeout(timer);
    },
  };
}

export function reserveOf(totalBytes: number): number {
  const share = Math.max(RESERVE_BYTES_MIN, Math.min(totalBytes / RESERVE_PARTS, RESERVE_BYTES_MAX));
  return Math.floor(Math.min(share, totalBytes / RESERVE_PARTS_MIN));
}

/** A folder that does not exist yet will be on its parent's disk. */
async function diskOf(folder: string): Promise<{ totalBytes: number; freeBytes: number }> {
  try {
    const { blocks, bavail, bsize } = await statfs(folder);
    return { totalBytes: blocks * bsize, freeBytes: bavail * bsize };
  } catch (error) {
    if (!isErrno(error, "ENOENT") || dirname(folder) === folder) throw error;
    return await diskOf(dirname(folder));
  }
}

/** The folders whose entries record their owner and size. */
const places: readonly { folder: string; record: string }[] = [
  { folder: "uploads", record: "upload.json" },
  { folder: "mirrors", record: OWNED_NAME },
  { folder: "templates", record: "image.json" },
  { folder: "snapshots", record: "snapshot.json" },
];

interface KeptRecord {
  owner?: unknown;
  spec?: { owner?: unknown };
  bytes?: unknown;
}

async function keptBytes(stateDir: string, owner: string): Promise<number> {
  let sum = 0;
  for (const { folder, record } of places) {
    for (const name of await ifErrno(readdir(join(stateDir, folder)), ABSENT, [])) {
      if (name.startsWith(".")) continue;
      const text = await ifErrno(readFile(join(stateDir, folder, name, record), "utf8"), ABSENT, null);
      const found = (text === null ? null : jsonOrNull(text)) as KeptRecord | null;
      const isOwn = found !== null && (found.owner ?? found.spec?.owner) === owner;
      if (isOwn && typeof found.bytes === "number") sum += found.bytes;
    }
  }
  return sum;
}

/**
 * Returns the disk usage of the files below a folder. Files that vanish during the scan do not count. Tests pass a
 * `disk`.
 */
export async function folderBytes(folder: string, disk = { lstat }): Promise<number> {
  let bytes = 0;
  for (const entry of await ifErrno(readdir(folder, { withFileTypes: true, recursive: true }), UNREACHABLE, [])) {
    if (!entry.isFile()) continue;
    const stat = await ifErrno(disk.lstat(join(entry.parentPath, entry.name)), UNREACHABLE, null);
    bytes += (stat?.blocks ?? 0) * 512;
  }
  return bytes;
}

function noRoom(what: string, { freeBytes, reserveBytes }: { freeBytes: number; reserveBytes: number }): CaissonError {
  return new CaissonError(
    "no_space",
    `the disk has no room for ${what}: ${showBytes(freeBytes)} are free, and ${showBytes(reserveBytes)} are reserved for the station`,
    { hint: "Free some space on the station's machine, for example with `caisson prune`; `station.diskReserveBytes` sets the reserve." },
  );
}

function noShare(what: string, { owner, bytesPerOwnerMax }: { owner: string; bytesPerOwnerMax: number }): CaissonError {
  return new CaissonError(
    "no_space",
    `${what} does not fit into the ${showBytes(bytesPerOwnerMax)} that ${owner} may store on the station`,
    {
      hint: "Remove unused uploads; `station.diskBytesPerOwnerMax` sets the limit per owner.",
    },
  );
}
