import { createHash } from "node:crypto";
import { mkdir, open, readdir, readFile, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import { z } from "zod";
import { CaissonError } from "../../contract/error/error.ts";
import { parseRequest } from "../../contract/error/parse-request.ts";
import { fromSystem } from "../../contract/error/system-error.ts";
import type { ProcessIdentity } from "../../contract/process-identity.ts";
import { LOCAL_OWNER } from "../../contract/token/owner.ts";
import { noSuchUpload } from "../../contract/upload/no-such-upload.ts";
import { UploadDigest, UploadId } from "../../contract/upload/upload.ts";
import { UploadView } from "../../contract/upload/upload-verbs.ts";
import { ABSENT, ifErrno, jsonOrNull } from "../../lib/failures.ts";
import { newId } from "../../lib/new-id.ts";
import { createDiskShares, type DiskShares } from "../../sandbox/disk-shares.ts";
import { unpackFolder } from "../../sandbox/tar/unpack-folder.ts";
import { uploadedTree, uploadsFolder } from "../../sandbox/uploaded-tree.ts";
import type { UploadVerbs } from "../../verbs/uploads.ts";
import type { UsedUploads } from "./used-uploads.ts";

/** The limits of an uploaded folder, and of stored uploads. */
export const uploadLimits = {
  bytesMax: 4 * 1024 ** 3,
  entriesMax: 500_000,
  /** How many skipped entries we report per upload. */
  skippedMax: 100,
  /** Unused uploads per owner. */
  unusedMax: 50,
  /** How long an unused upload is stored. */
  unusedMs: 3_600_000,
} as const;

const RECORD_NAME = "upload.json";
const TREE_MODE = 0o755;
/** What an archive needs on average for an entry besides its content. */
const HEADER_BYTES_MAX = 4096;

const UploadRecord = UploadView.omit({ expiresAt: true }).extend({ version: z.literal(1) });
type UploadRecord = z.infer<typeof UploadRecord>;

export interface LocalUploadsOptions {
  stateDir: string;
  /** Returns the uploads that sessions, sandboxes and snapshots use. */
  used: () => Promise<UsedUploads>;
  /** Identifies this process, and checks whether another process is alive. */
  self: () => ProcessIdentity;
  alive: (maker: ProcessIdentity) => boolean;
  disk?: DiskShares;
  limits?: Partial<Record<keyof typeof uploadLimits, number>>;
  now?: () => number;
}

export interface LocalUploads extends UploadVerbs {
  /** Returns the folder with an upload's files. Restarts the time after which it expires. Throws `not_found`. */
  treeOf(id: string, options: { owner: string }): Promise<string>;
}

/**
 * Stores uploads in the state folder, one folder each. The name of an unfinished upload contains the process that
 * receives it.
 */
export function createLocalUploads(options: LocalUploadsOptions): LocalUploads {
  const { stateDir } = options;
  const limits = { ...uploadLimits, ...options.limits };
  const now = options.now ?? Date.now;
  const root = uploadsFolder(stateDir);
  const disk = options.disk ?? createDiskShares({ stateDir });
  const records = async () => await readRecords(root);
  const toView = (record: UploadRecord, used: UsedUploads): UploadView => {
    const { version: _, ...view } = record;
    const expiresAt = used.has(record.id) ? null : new Date(Date.parse(record.createdAt) + limits.unusedMs).toISOString();
    return { ...view, expiresAt };
  };
  const find = async (id: string): Promise<UploadRecord> => {
    const found = UploadId.safeParse(id).success ? await readRecord(join(root, id)) : null;
    if (found !== null) return found;
    throw noSuchUpload(id);
  };
  const sweep = async () => {
    const used = await options.used();
    for (const { id, createdAt } of await records())
      if (!used.has(id) && now() - Date.parse(createdAt) >= limits.unusedMs) await removeUpload(root, id);
    await removeRemains(root, options);
  };

  return {
    sweep,
    async put(archive, { digest, owner = LOCAL_OWNER, signal } = {}) {
      if (digest !== undefined) parseRequest(UploadDigest, digest, "an upload");
      await sweep();
      const used = await options.used();
      const unused = (await records()).filter((record) => record.owner === owner && !used.has(record.id));
      if (unused.length >= limits.unusedMax) {
        throw new CaissonError("busy", `${unused.length} unused uploads are stored already`, {
          hint: `Remove some. Each unused upload expires after ${limits.unusedMs / 60_000} minutes.`,
        });
      }
      const id = newId("up");
      const part = join(root, partName(id, options.self()));
      try {
        const newRecord = await disk.write({ what: "the upload", owner, signal }, ({ add, signal: ending }) =>
          receive(archive, { part, id, owner, limits, now, add, signal: ending, ...(digest && { digest }) }),
        );
        const same = (await records()).find((record) => record.owner === owner && record.digest === newRecord.digest);
        if (same !== undefined) {
          await rm(part, { recursive: true, force: true });
          return toView(await renew(root, same, now), used);
        }
        await rename(part, join(root, id));
        return toView(newRecord, used);
      } catch (error) {
        await rm(part, { recursive: true, force: true });
        throw toUploadError(error);
      }
    },
    async list({ digest, owner } = {}) {
      const used = await options.used();
      const found = await records();
      const matchesFilter = (record: UploadRecord) =>
        (digest === undefined || record.digest === digest) && (owner === undefined || record.owner === owner);
      return found.filter(matchesFilter).map((record) => toView(record, used));
    },
    get: async (id) => toView(await find(id), await options.used()),
    async remove(id) {
      await find(id);
      if ((await options.used()).has(id)) throw new CaissonError("conflict", `the upload ${id} is in use`);
      await removeUpload(root, id);
    },
    async treeOf(id, { owner }) {
      // The caller is about to use it, so it gets the full time again.
      const found = await find(id);
      if (found.owner !== owner) throw noSuchUpload(id);
      await renew(root, found, now);
      return uploadedTree(stateDir, id);
    },
  };
}

async function receive(
  archive: AsyncIterable<Uint8Array>,
  options: {
    part: string;
    id: string;
    owner: string;
    digest?: string;
    signal: AbortSignal;
    /** Called before each piece is written. */
    add: (bytes: number) => Promise<void>;
    limits: { bytesMax: number; entriesMax: number; skippedMax: number };
    now: () => number;
  },
): Promise<UploadRecord> {
  const { part, id, owner, limits, signal, add } = options;
  await mkdir(part, { recursive: true, mode: 0o700 });
  const tree = join(part, "tree");
  await mkdir(tree, { mode: TREE_MODE });
  const hash = createHash("sha256");
  const received = { bytes: 0 };
  const source = hashWhileReceiving(archive, hash, {
    received,
    bytesMax: limits.bytesMax + limits.entriesMax * HEADER_BYTES_MAX,
    add,
    signal,
  });
  const { entries, bytes, skipped } = await unpackFolder(tree, source, {
    bytesMax: limits.bytesMax,
    entriesMax: limits.entriesMax,
    drain: true,
  });
  if (received.bytes === 0) throw new CaissonError("invalid", "the upload is empty", { hint: "Send a tar archive of a folder." });
  const digest = hash.digest("hex");
  if (options.digest !== undefined && digest !== options.digest)
    throw new CaissonError("invalid", "the upload does not match the given digest", { hint: "It was changed in transit. Send it again." });
  const createdAt = new Date(options.now()).toISOString();
  const skippedEntries = skipped
    .slice(0, limits.skippedMax)
    .map(({ name, reason }) => ({ name: name.slice(0, 4096), reason: reason.slice(0, 4096) }));
  const record: UploadRecord = { version: 1, id, owner, digest, entries, bytes, createdAt, skipped: skippedEntries };
  await write(part, record);
  return record;
}

async function* hashWhileReceiving(
  archive: AsyncIterable<Uint8Array>,
  hash: ReturnType<typeof createHash>,
  {
    received,
    bytesMax,
    signal,
    add,
  }: { received: { bytes: number }; bytesMax: number; signal: AbortSignal; add: (bytes: number) => Promise<void> },
): AsyncGenerator<Uint8Array> {
  for await (const piece of archive) {
    if (signal.aborted) throw new CaissonError("cancelled", "the upload was cancelled");
    received.bytes += piece.length;
    if (received.bytes > bytesMax) throw new CaissonError("too_large", `the archive exceeds ${bytesMax} bytes`);
    await add(piece.length);
    hash.update(piece);
    yield piece;
  }
}

async function write(folder: string, record: UploadRecord): Promise<void> {
  const part = join(folder, `${RECORD_NAME}.${newId("part")}`);
  await using file = await open(part, "wx", 0o600);
  await file.writeFile(JSON.stringify(record));
  await file.sync();
  await rename(part, join(folder, RECORD_NAME));
}

/** Restarts the time after which the upload expires. */
async function renew(root: string, record: UploadRecord, now: () => number): Promise<UploadRecord> {
  const renewed = { ...record, createdAt: new Date(now()).toISOString() };
  await write(join(root, record.id), renewed);
  return renewed;
}

async function readRecords(root: string): Promise<UploadRecord[]> {
  const names = (await ifErrno(readdir(root), ABSENT, [])).filter((name) => UploadId.safeParse(name).success);
  return (await Promise.all(names.map((name) => readRecord(join(root, name))))).filter((record) => record !== null);
}

async function readRecord(folder: string): Promise<UploadRecord | null> {
  const text = await ifErrno(readFile(join(folder, RECORD_NAME), "utf8"), ABSENT, null);
  const parsed = UploadRecord.safeParse(text === null ? null : jsonOrNull(text));
  return parsed.success ? parsed.data : null;
}

const PART = /^\.part-(\d+)-(\d+)-(.+)-up_[a-z2-7]{12}$/;
const partName = (id: string, { pid, startTicks, bootId }: ProcessIdentity) => `.part-${pid}-${startTicks}-${bootId}-${id}`;
const GONE = ".gone-";

/** Renames the upload first, so that no process finds a partly removed one. */
async function removeUpload(root: string, id: string): Promise<void> {
  const trashFolder = join(root, `${GONE}${id}`);
  await ifErrno(rename(join(root, id), trashFolder), [...ABSENT, "ENOTEMPTY", "EEXIST"], undefined);
  await rm(trashFolder, { recursive: true, force: true });
}

/** Removes unfinished uploads of dead processes, and interrupted removals. */
async function removeRemains(root: string, { alive }: Pick<LocalUploadsOptions, "alive">): Promise<void> {
  for (const name of await ifErrno(readdir(root), ABSENT, [])) {
    const [, pid, startTicks, bootId] = PART.exec(name) ?? [];
    const isDead = bootId !== undefined && !alive({ pid: Number(pid), startTicks: Number(startTicks), bootId });
    if (isDead || name.startsWith(GONE)) await rm(join(root, name), { recursive: true, force: true });
  }
}

function toUploadError(error: unknown): unknown {
  if (error instanceof CaissonError) return error;
  return fromSystem(error) ?? error;
}
