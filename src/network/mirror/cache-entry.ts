import { type FileHandle, open } from "node:fs/promises";
import { z } from "zod";
import { ignore } from "../../lib/failures.ts";

/** The metadata of a cached item. It follows the content in the same file, so that one rename makes both appear. */
const CacheRecord = z.strictObject({
  key: z.string(),
  /** The registry's status. 404 and 410 are cached too, without content. */
  status: z.union([z.literal(200), z.literal(404), z.literal(410)]),
  contentType: z.string(),
  /** The registry's own validators, for asking again. */
  etag: z.string().nullable(),
  lastModified: z.string().nullable(),
  sha256: z.string(),
  bytes: z.int().nonnegative(),
  /** The size of the file digests from a page, which are between the content and this record; see `digestIn`. */
  listBytes: z.int().nonnegative(),
});
export type CacheRecord = z.infer<typeof CacheRecord>;

/** An open entry, which stays readable even if it is evicted or replaced. Its reader closes it. */
export interface CacheEntry {
  record: CacheRecord;
  /** When the registry last confirmed it. */
  fetchedAtMs: number;
  usedAtMs: number;
  read(position: number, bytes: number): Promise<Buffer>;
  list(): Promise<string>;
  close(): Promise<void>;
}

const FOOTER_BYTES = 12;
const MAGIC = "caisson1";
/** Longer than any record. */
const TAIL_BYTES = 64 * 1024;

/**
 * Encodes the end of a file: content, list, record, length of the record, magic. A truncated file has no such footer.
 */
export function encodeRecord(record: CacheRecord): Buffer {
  const json = Buffer.from(JSON.stringify(record));
  const footer = Buffer.alloc(FOOTER_BYTES);
  footer.writeUInt32BE(json.length, 0);
  footer.write(MAGIC, 4, "latin1");
  return Buffer.concat([json, footer]);
}

/** Returns null if there is no file, or if it is not a complete entry of this key. */
export async function openEntry(path: string, key: string): Promise<CacheEntry | null> {
  const handle = (await ignore(open(path, "r"), "a package that cannot be read is fetched again")) ?? null;
  if (handle === null) return null;
  const entry = await ignore(readEntry(handle, key), "a package that cannot be read is fetched again");
  if (entry == null) await handle.close();
  return entry ?? null;
}

async function readEntry(handle: FileHandle, key: string): Promise<CacheEntry | null> {
  const { size, mtimeMs, atimeMs } = await handle.stat();
  // Most entries are small enough for one read.
  const tailAt = Math.max(0, size - TAIL_BYTES);
  const tail = await readExactly(handle, tailAt, size - tailAt);
  const record = recordIn(tail, size);
  if (record?.key !== key) return null;
  const read = async (position: number, bytes: number) =>
    position >= tailAt ? tail.subarray(position - tailAt, position - tailAt + bytes) : readExactly(handle, position, bytes);
  return {
    record,
    fetchedAtMs: mtimeMs,
    usedAtMs: atimeMs,
    read,
    list: async () => (await read(record.bytes, record.listBytes)).toString(),
    close: async () => void (await ignore(handle.close(), "it was only read")),
  };
}

/** Reads exactly this many bytes. Throws if the file is shorter. */
export async function readExactly(handle: FileHandle, position: number, bytes: number): Promise<Buffer> {
  const buffer = Buffer.allocUnsafe(bytes);
  let done = 0;
  while (done < bytes) {
    const { bytesRead } = await handle.read(buffer, done, bytes - done, position + done);
    if (bytesRead === 0) throw new Error("the file is shorter than it was");
    done += bytesRead;
  }
  return buffer;
}

function recordIn(tail: Buffer, size: number): CacheRecord | null {
  const end = tail.length - FOOTER_BYTES;
  if (end < 0 || tail.toString("latin1", end + 4) !== MAGIC) return null;
  const length = tail.readUInt32BE(end);
  if (length > end) return null;
  const parsed = CacheRecord.safeParse(JSON.parse(tail.toString("utf8", end - length, end)));
  return parsed.success && parsed.data.bytes + parsed.data.listBytes === size - FOOTER_BYTES - length ? parsed.data : null;
}
