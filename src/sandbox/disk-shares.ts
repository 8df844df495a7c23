import { lstat, readdir, readFile, statfs } from "node:fs/promises";
import { dirname, join } from "node:path";
import { CaissonError } from "../contract/error.ts";
import { LOCAL_OWNER } from "../contract/owner.ts";

import { isErrno } from "../lib/is-errno.ts";
import { jsonOrNull } from "../lib/json-or-null.ts";
import { showBytes } from "../lib/quantity.ts";

const MIB = 1024 ** 2;
/** The same as the guest's: one part in so many of the file system, within these bounds. */
const RESERVE_PARTS = 20;
const RESERVE_BYTES_MIN = 256 * MIB;
const RESERVE_BYTES_MAX = 10_240 * MIB;
/** A small file system keeps no more than this part of it. */
const RESERVE_PARTS_MIN = 4;
/** What one owner may have kept: one part in so many of the file system. */
const OWNER_PARTS = 4;
/** How often the disk is looked at while something writes, and after how many bytes. */
const LOOK_MS = 100;
const LOOK_BYTES = 4 * MIB;
/** How often the folder of a program that writes by itself is measured. */
const MEASURE_MS = 1000;

/** In the folder of a mirror: for whom it is kept, and how large it is. */
export const OWNED_NAME = "caisson-owned.json";

export interface DiskSharesOptions {
  stateDir: string;
  /** What stays free for the station itself. Absent: a twentieth of the file system, from 256 MiB to 10 GiB. */
  reserveBytes?: number | undefined;
  /** What is kept for one owner: uploads, mirrors, images and snapshots. Absent: a quarter of the file system. */
  bytesPerOwnerMax?: number | undefined;
  /** The file system of a folder; for tests. */
  look?: (folder: string) => Promise<{ totalBytes: number; freeBytes: number }>;
}

/** Something that is written for a caller. */
export interface DiskWrite {
  /** Aborted when there is no more room: programs that write by themselves end. */
  signal: AbortSignal;
  /** Counts what is about to be written. Throws `no_space`. */
  add(bytes: number): Promise<void>;
}

export interface WriteOptions {
  /** What is written, as a noun: `the upload`. */
  what: string;
  /** For whom it is kept. Absent: it goes again, or has a bound of its own. */
  owner?: string | undefined;
  signal?: AbortSignal | undefined;
  /** A folder whose size counts, where a program fills it. */
  measured?: string;
}

/** The disk of the state folder: what the station keeps for itself, and what each owner may have of it. */
export interface DiskShares {
  /**
   * Does something that writes. Throws `no_space` before it begins, or while it runs, when the reserve or the owner's
   * share is reached; who writes removes what there is.
   */
  write<Result>(options: WriteOptions, work: (write: DiskWrite) => Promise<Result>): Promise<Result>;
  /** Looks once, before something small is written. Throws `no_space`. */
  check(what: string): Promise<void>;
  /** What may still be kept for an owner. */
  left(owner: string): Promise<number>;
}

interface Active {
  owner: string | undefined;
  bytes: number;
}

export function createDiskShares(options: DiskSharesOptions): DiskShares {
  const { stateDir, look = lookAt } = options;
  const active = new Set<Active>();
  const room = async () => {
    const { totalBytes, freeBytes } = await look(stateDir);
    const reserveBytes = options.reserveBytes ?? reserveOf(totalBytes);
    const bytesPerOwnerMax = options.bytesPerOwnerMax ?? Math.floor(totalBytes / OWNER_PARTS);
    return { freeBytes, reserveBytes, bytesPerOwnerMax };
  };
  const underWay = (owner: string) => [...active].reduce((sum, each) => sum + (each.owner === owner ? each.bytes : 0), 0);
  const check = async ({ what, owner }: WriteOptions, kept: number) => {
    const { freeBytes, reserveBytes, bytesPerOwnerMax } = await room();
    if (freeBytes <= reserveBytes) throw noRoom(what, { freeBytes, reserveBytes });
    if (isBounded(owner) && kept + underWay(owner) > bytesPerOwnerMax) throw noShare(what, { owner, bytesPerOwnerMax });
  };
  return {
    check: (what) => check({ what }, 0),
    async left(owner) {
      if (!isBounded(owner)) return Number.MAX_SAFE_INTEGER;
      return Math.max(0, (await room()).bytesPerOwnerMax - (await keptBytes(stateDir, owner)) - underWay(owner));
    },
    async write(asked, work) {
      const kept = isBounded(asked.owner) ? await keptBytes(stateDir, asked.owner) : 0;
      await check(asked, kept);
      const entry: Active = { owner: asked.owner, bytes: 0 };
      active.add(entry);
      const ending = new AbortController();
      let why: CaissonError | undefined;
      const watch = watching(async (turn) => {
        if (asked.measured !== undefined && turn % (MEASURE_MS / LOOK_MS) === 0) entry.bytes = await folderBytes(asked.measured);
        await check(asked, kept);
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
        await check(asked, kept);
      };
      try {
        const signal = asked.signal === undefined ? ending.signal : AbortSignal.any([asked.signal, ending.signal]);
        const result = await work({ signal, add });
        // What came since the last look counts as well.
        if (unlooked > 0 || asked.measured !== undefined) await check(asked, kept);
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

/** The machine's user decides about their own disk; the reserve holds for everybody. */
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

/** A folder that is not there yet will be on the disk of the one above it. */
async function lookAt(folder: string): Promise<{ totalBytes: number; freeBytes: number }> {
  try {
    const { blocks, bavail, bsize } = await statfs(folder);
    return { totalBytes: blocks * bsize, freeBytes: bavail * bsize };
  } catch (error) {
    if (!isErrno(error, "ENOENT") || dirname(folder) === folder) throw error;
    return await lookAt(dirname(folder));
  }
}

/** Where things are that say for whom they are kept, and how large they are. */
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
    for (const name of await readdir(join(stateDir, folder)).catch(() => [] as string[])) {
      if (name.startsWith(".")) continue;
      const text = await readFile(join(stateDir, folder, name, record), "utf8").catch(() => null);
      const found = (text === null ? null : jsonOrNull(text)) as KeptRecord | null;
      const isOwn = found !== null && (found.owner ?? found.spec?.owner) === owner;
      if (isOwn && typeof found.bytes === "number") sum += found.bytes;
    }
  }
  return sum;
}

/** What the files below a folder take on disk; files that vanish meanwhile do not count. */
export async function folderBytes(folder: string): Promise<number> {
  let bytes = 0;
  for (const entry of await readdir(folder, { withFileTypes: true, recursive: true }).catch(() => [])) {
    if (entry.isFile())
      bytes += await lstat(join(entry.parentPath, entry.name)).then(
        ({ blocks }) => blocks * 512,
        () => 0,
      );
  }
  return bytes;
}

function noRoom(what: string, { freeBytes, reserveBytes }: { freeBytes: number; reserveBytes: number }): CaissonError {
  return new CaissonError(
    "no_space",
    `the disk has no room for ${what}: ${showBytes(freeBytes)} are free, and ${showBytes(reserveBytes)} are kept for the station`,
    { hint: "Make room on the station's machine, such as with `caisson prune`; `station.diskReserveBytes` says what stays free." },
  );
}

function noShare(what: string, { owner, bytesPerOwnerMax }: { owner: string; bytesPerOwnerMax: number }): CaissonError {
  return new CaissonError("no_space", `${what} does not fit into the ${showBytes(bytesPerOwnerMax)} that the station keeps for ${owner}`, {
    hint: "Remove uploads that nothing uses; `station.diskBytesPerOwnerMax` says how much one owner may have.",
  });
}
