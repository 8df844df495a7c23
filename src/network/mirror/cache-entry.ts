import { type FileHandle, open } from "node:fs/promises";
import { z } from "zod";

/** What is known of a kept thing. It stands behind the content, in the same file, so that one rename makes both appear. */
const CacheRecord = z.strictObject({
  key: z.string(),
  /** What the registry answered. 404 and 410 are kept, too, without content. */
  status: z.union([z.literal(200), z.literal(404), z.literal(410)]),
  contentType: z.string(),
  /** The registry's own, for asking again. */
  etag: z.string().nullable(),
  lastModified: z.string().nullable(),
  sha256: z.string(),
  bytes: z.int().nonnegative(),
  /** What a page says of its files, between the content and this record; see `digestIn`. */
  listBytes: z.int().nonnegative(),
});
export type CacheRecord = z.infer<typeof CacheRecord>;

/** An open one stays readable when it is evicted or replaced meanwhile. Whoever has it closes it. */
export interface CacheEntry {
  record: CacheRecord;
  /** When the registry last said so. */
  fetchedAtMs: number;
  read(position: number, bytes: number): Promise<Buffer>;
  list(): Promise<string>;
  close(): Promise<void>;
}

const FOOTER_BYTES = 12;
const MAGIC = "caisson1";
const RECORD_BYTES_MAX = 16 * 1024;

/** Content, list, record, length of the record, magic: a file that was cut off has no footer. */
export function encodeRecord(record: CacheRecord): Buffer {
  const json = Buffer.from(JSON.stringify(record));
  const footer = Buffer.alloc(FOOTER_BYTES);
  footer.writeUInt32BE(json.length, 0);
  footer.write(MAGIC, 4, "latin1");
  return Buffer.concat([json, footer]);
}

/** Null when there is none, or when what is there is not a whole entry of this key. */
export async function openEntry(path: string, key: string): Promise<CacheEntry | null> {
  const handle = await open(path, "r").catch(() => null);
  if (handle === null) return null;
  try {
    const { size, mtimeMs } = await handle.stat();
    const record = await readRecord(handle, size);
    if (record?.key === key) {
      return {
        record,
        fetchedAtMs: mtimeMs,
        read: (position, bytes) => readExactly(handle, position, bytes),
        list: async () => (await readExactly(handle, record.bytes, record.listBytes)).toString(),
        close: () => handle.close().catch(() => undefined),
      };
    }
  } catch {
    // Unreadable is as good as absent: it is fetched again.
  }
  await handle.close();
  return null;
}

/** Reads what is there; throws when the file is shorter. */
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

async function readRecord(handle: FileHandle, size: number): Promise<CacheRecord | null> {
  if (size < FOOTER_BYTES) return null;
  const footer = await readExactly(handle, size - FOOTER_BYTES, FOOTER_BYTES);
  const length = footer.readUInt32BE(0);
  if (footer.toString("latin1", 4) !== MAGIC || length > RECORD_BYTES_MAX || length > size - FOOTER_BYTES) return null;
  const json = await readExactly(handle, size - FOOTER_BYTES - length, length);
  const parsed = CacheRecord.safeParse(JSON.parse(json.toString()));
  return parsed.success && parsed.data.bytes + parsed.data.listBytes === size - FOOTER_BYTES - length ? parsed.data : null;
}
