import { createHash } from "node:crypto";
import { mkdir, open, readdir, readFile, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import { z } from "zod";
import { CaissonError } from "../../contract/error.ts";
import { LOCAL_OWNER } from "../../contract/owner.ts";
import { parseRequest } from "../../contract/parse-request.ts";
import type { ProcessIdentity } from "../../contract/process-identity.ts";
import { fromSystem } from "../../contract/system-error.ts";
import { UploadDigest, UploadId } from "../../contract/upload.ts";
import { UploadView } from "../../contract/upload-verbs.ts";
import { jsonOrNull } from "../../lib/json-or-null.ts";
import { newId } from "../../lib/new-id.ts";
import { createDiskShares, type DiskShares } from "../../sandbox/disk-shares.ts";
import { unpackFolder } from "../../sandbox/tar/unpack-folder.ts";
import { uploadedTree, uploadsFolder } from "../../sandbox/uploaded-tree.ts";
import { noSuchUpload } from "./no-such-upload.ts";
import type { UsedUploads } from "./used-uploads.ts";
import type { UploadVerbs } from "./verbs.ts";

/** The bounds of a folder that is sent, and of what is kept. */
export const uploadLimits = {
  bytesMax: 4 * 1024 ** 3,
  entriesMax: 500_000,
  /** Told of each upload. */
  skippedMax: 100,
  /** Of one owner, that nothing uses. */
  unusedMax: 50,
  /** How long one stays that nothing uses. */
  unusedMs: 3_600_000,
} as const;

const RECORD_NAME = "upload.json";
const TREE_MODE = 0o755;
/** What an archive needs for an entry besides its content, on average. */
const HEADER_BYTES_MAX = 4096;

const UploadRecord = UploadView.omit({ expiresAt: true }).extend({ version: z.literal(1) });
type UploadRecord = z.infer<typeof UploadRecord>;

export interface LocalUploadsOptions {
  stateDir: string;
  /** The uploads that sessions, sandboxes and snapshots are made of. */
  used: () => Promise<UsedUploads>;
  /** This process, and whether another one lives. */
  self: () => ProcessIdentity;
  alive: (maker: ProcessIdentity) => boolean;
  disk?: DiskShares;
  limits?: Partial<Record<keyof typeof uploadLimits, number>>;
  now?: () => number;
}

export interface LocalUploads extends UploadVerbs {
  /** The folder that has its files. From now on it is used for as long as any other. Throws `not_found`. */
  treeOf(id: string, asked: { owner: string }): Promise<string>;
}

/** Uploads in the state folder, a folder each. One that is being made has another name, which says by whom. */
export function createLocalUploads(options: LocalUploadsOptions): LocalUploads {
  const { stateDir } = options;
  const limits = { ...uploadLimits, ...options.limits };
  const now = options.now ?? Date.now;
  const root = uploadsFolder(stateDir);
  const disk = options.disk ?? createDiskShares({ stateDir });
  const records = async () => await readRecords(root);
  const viewed = (record: UploadRecord, used: UsedUploads): UploadView => {
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
        throw new CaissonError("busy", `${unused.length} uploads are kept already that nothing uses`, {
          hint: `Each goes ${limits.unusedMs / 60_000} minutes after it came, or when it is removed.`,
        });
      }
      const id = newId("up");
      const part = join(root, partName(id, options.self()));
      try {
        const made = await disk.write({ what: "the upload", owner, signal }, ({ add, signal: ending }) =>
          receive(archive, { part, id, owner, limits, now, add, signal: ending, ...(digest && { digest }) }),
        );
        const same = (await records()).find((record) => record.owner === owner && record.digest === made.digest);
        if (same !== undefined) {
          await rm(part, { recursive: true, force: true });
          return viewed(await renew(root, same, now), used);
        }
        await rename(part, join(root, id));
        return viewed(made, used);
      } catch (error) {
        await rm(part, { recursive: true, force: true });
        throw translated(error);
      }
    },
    async list({ digest, owner } = {}) {
      const used = await options.used();
      const found = await records();
      const isAsked = (record: UploadRecord) =>
        (digest === undefined || record.digest === digest) && (owner === undefined || record.owner === owner);
      return found.filter(isAsked).map((record) => viewed(record, used));
    },
    get: async (id) => viewed(await find(id), await options.used()),
    async remove(id) {
      await find(id);
      if ((await options.used()).has(id)) throw new CaissonError("conflict", `the upload ${id} is in use`);
      await removeUpload(root, id);
    },
    async treeOf(id, { owner }) {
      // Whoever is about to use it has as much time for that as if it had come now.
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
    /** Asked before each piece is written. */
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
  const source = hashed(archive, hash, {
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
    throw new CaissonError("invalid", "the upload has not the digest that was said", { hint: "It was changed on the way; send it again." });
  const createdAt = new Date(options.now()).toISOString();
  const told = skipped
    .slice(0, limits.skippedMax)
    .map(({ name, reason }) => ({ name: name.slice(0, 4096), reason: reason.slice(0, 4096) }));
  const record: UploadRecord = { version: 1, id, owner, digest, entries, bytes, createdAt, skipped: told };
  await write(part, record);
  return record;
}

async function* hashed(
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
    if (signal.aborted) throw new CaissonError("cancelled", "the upload was given up");
    received.bytes += piece.length;
    if (received.bytes > bytesMax) throw new CaissonError("too_large", `the archive has more than ${bytesMax} bytes`);
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

/** As if it had come now. */
async function renew(root: string, record: UploadRecord, now: () => number): Promise<UploadRecord> {
  const renewed = { ...record, createdAt: new Date(now()).toISOString() };
  await write(join(root, record.id), renewed);
  return renewed;
}

async function readRecords(root: string): Promise<UploadRecord[]> {
  const names = (await readdir(root).catch(() => [] as string[])).filter((name) => UploadId.safeParse(name).success);
  return (await Promise.all(names.map((name) => readRecord(join(root, name))))).filter((record) => record !== null);
}

async function readRecord(folder: string): Promise<UploadRecord | null> {
  const text = await readFile(join(folder, RECORD_NAME), "utf8").catch(() => null);
  const parsed = UploadRecord.safeParse(text === null ? null : jsonOrNull(text));
  return parsed.success ? parsed.data : null;
}

const PART = /^\.part-(\d+)-(\d+)-(.+)-up_[a-z2-7]{12}$/;
const partName = (id: string, { pid, startTicks, bootId }: ProcessIdentity) => `.part-${pid}-${startTicks}-${bootId}-${id}`;
const GONE = ".gone-";

/** First under another name, so that nobody finds a part of it. */
async function removeUpload(root: string, id: string): Promise<void> {
  const gone = join(root, `${GONE}${id}`);
  await rename(join(root, id), gone).catch(() => undefined);
  await rm(gone, { recursive: true, force: true });
}

/** What died in the middle: of a process that is no more, or a removal that was cut off. */
async function removeRemains(root: string, { alive }: Pick<LocalUploadsOptions, "alive">): Promise<void> {
  for (const name of await readdir(root).catch(() => [] as string[])) {
    const [, pid, startTicks, bootId] = PART.exec(name) ?? [];
    const isDead = bootId !== undefined && !alive({ pid: Number(pid), startTicks: Number(startTicks), bootId });
    if (isDead || name.startsWith(GONE)) await rm(join(root, name), { recursive: true, force: true });
  }
}

function translated(error: unknown): unknown {
  if (error instanceof CaissonError) return error;
  return fromSystem(error) ?? error;
}
