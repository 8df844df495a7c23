import { CaissonError } from "../../contract/error/error.ts";
import { BLOCK_BYTES as BLOCK } from "./tar-header.ts";

/** The limits of names, and of the extended headers that carry long ones. */
const NAME_BYTES_MAX = 4095;
const EXTENDED_BYTES_MAX = 1024 * 1024;

export type RawTarKind = "file" | "folder" | "link" | "hardLink" | "device" | "fifo";

/** One entry of an archive. Names are bytes, stored as latin1 text, because archives do not guarantee UTF-8. */
export interface RawTarEntry {
  name: string;
  kind: RawTarKind;
  linkName: string;
  mode: number;
  uid: number;
  gid: number;
  size: number;
  modifiedMs: number;
  /** The bytes of a file. Unread bytes are skipped. */
  content: AsyncIterable<Uint8Array>;
}

export interface RawTarOptions {
  /** Reads past the archive's end, so a digest of the source covers all of it. Only for a source of limited size. */
  drain?: boolean;
}

/**
 * Reads untrusted ustar, pax and GNU archives: checks checksums and limits lengths. The caller decides whether a name
 * is acceptable. Throws `invalid` for anything that is not an archive, `unsafe` for names over 4,095 bytes,
 * `unsupported` for sparse files. Closes the source at the end.
 */
export async function* readRawTar(source: AsyncIterable<Uint8Array>, options: RawTarOptions = {}): AsyncGenerator<RawTarEntry> {
  const bytes = createByteReader(source);
  try {
    yield* entriesOf(bytes);
    if (options.drain === true) await bytes.drain();
  } finally {
    await bytes.close();
  }
}

async function* entriesOf(bytes: ReturnType<typeof createByteReader>): AsyncGenerator<RawTarEntry> {
  let extended: Record<string, string> = {};
  for (;;) {
    const block = await bytes.take(BLOCK, { endAllowed: true });
    // Two empty blocks end an archive; some writers write only one, or none.
    if (block === null || isEmpty(block)) break;
    const header = parseHeader(block);
    const padding = (BLOCK - (header.size % BLOCK)) % BLOCK;
    const meta = metaKinds[header.type];
    if (meta !== undefined) {
      if (header.size > EXTENDED_BYTES_MAX) throw brokenArchiveError("an extended header is too long");
      const data = await bytes.take(header.size);
      await bytes.take(padding);
      // A global header describes the whole archive and must not set anything that is used here.
      if (meta === "pax") extended = { ...extended, ...parsePax(data) };
      else if (meta !== "global") extended = { ...extended, [meta]: cut(data) };
      continue;
    }
    const entry = entryOf(header, extended);
    extended = {};
    const sizeLeft = { value: entry.size };
    const pad = (BLOCK - (entry.size % BLOCK)) % BLOCK;
    yield { ...entry, content: bytes.stream(sizeLeft) };
    for await (const _ of bytes.stream(sizeLeft));
    await bytes.take(pad);
  }
}

interface Header {
  name: string;
  type: string;
  linkName: string;
  mode: number;
  uid: number;
  gid: number;
  size: number;
  modifiedSeconds: number;
}

const metaKinds: Record<string, "pax" | "global" | "path" | "linkpath"> = { x: "pax", X: "pax", g: "global", L: "path", K: "linkpath" };
const kinds: Record<string, RawTarKind> = {
  "0": "file",
  "\0": "file",
  "7": "file",
  "1": "hardLink",
  "2": "link",
  "3": "device",
  "4": "device",
  "5": "folder",
  "6": "fifo",
};

function parseHeader(block: Buffer): Header {
  let sum = 0;
  for (let index = 0; index < BLOCK; index += 1) sum += index >= 148 && index < 156 ? 32 : (block[index] ?? 0);
  if (sum !== number(block, 148, 8)) throw brokenArchiveError("a header's checksum is wrong");
  const prefix = block.toString("latin1", 257, 262) === "ustar" && block[262] === 0 ? cut(block.subarray(345, 500)) : "";
  const name = cut(block.subarray(0, 100));
  return {
    name: prefix === "" ? name : `${prefix}/${name}`,
    type: block.toString("latin1", 156, 157),
    linkName: cut(block.subarray(157, 257)),
    mode: number(block, 100, 8),
    uid: number(block, 108, 8),
    gid: number(block, 116, 8),
    size: number(block, 124, 12),
    modifiedSeconds: number(block, 136, 12),
  };
}

function entryOf(header: Header, extended: Record<string, string>): Omit<RawTarEntry, "content"> {
  if (header.type === "S" || extended[SPARSE] !== undefined) {
    throw new CaissonError("unsupported", "the archive contains sparse files", { hint: "Create it without `--sparse`." });
  }
  const kind = kinds[header.type];
  if (kind === undefined) throw brokenArchiveError(`an entry has the unknown kind ${JSON.stringify(header.type)}`);
  const name = extended.path ?? header.name;
  const linkName = extended.linkpath ?? header.linkName;
  if (name.length > NAME_BYTES_MAX || linkName.length > NAME_BYTES_MAX)
    throw new CaissonError("unsafe", `the archive contains a name longer than ${NAME_BYTES_MAX} bytes`);
  if (name.includes("\0") || linkName.includes("\0")) throw brokenArchiveError("a name contains NUL");
  const size = kind === "file" ? count(extended.size, header.size) : 0;
  return {
    name,
    // Old archives mark folders only by a trailing slash.
    kind: kind === "file" && name.endsWith("/") && size === 0 ? "folder" : kind,
    linkName,
    mode: header.mode & 0o7777,
    uid: count(extended.uid, header.uid),
    gid: count(extended.gid, header.gid),
    size,
    modifiedMs: extended.mtime === undefined ? header.modifiedSeconds * 1000 : milliseconds(extended.mtime),
  };
}

function count(text: string | undefined, otherwise: number): number {
  if (text === undefined) return otherwise;
  const value = /^\d{1,16}$/.test(text) ? Number(text) : Number.NaN;
  if (!Number.isSafeInteger(value)) throw brokenArchiveError("an extended header contains an invalid number");
  return value;
}

/** Parses a time; times before 1970 become 0. */
function milliseconds(text: string): number {
  if (!/^-?\d{1,12}(\.\d{1,20})?$/.test(text)) throw brokenArchiveError("an extended header contains an invalid time");
  return Math.max(0, Math.round(Number(text) * 1000));
}

const SPARSE = "GNU.sparse";
const usedRecords: ReadonlySet<string> = new Set(["path", "linkpath", "size", "uid", "gid", "mtime"]);

/** Parses records of the form `LENGTH KEY=VALUE\n`, where the length includes itself. */
function parsePax(data: Buffer): Record<string, string> {
  const records: Record<string, string> = Object.create(null);
  let at = 0;
  while (at < data.length) {
    const space = data.indexOf(32, at);
    const length = space < 0 || space - at > 8 ? Number.NaN : Number(data.toString("latin1", at, space));
    if (!Number.isInteger(length) || length <= space - at + 1 || at + length > data.length)
      throw brokenArchiveError("an extended header is damaged");
    const record = data.toString("latin1", space + 1, at + length - 1);
    const equals = record.indexOf("=");
    if (equals < 1 || data[at + length - 1] !== 10) throw brokenArchiveError("an extended header is damaged");
    const key = record.slice(0, equals);
    // Unused records are dropped, because an archive could have any number of such headers before an entry.
    if (usedRecords.has(key)) records[key] = record.slice(equals + 1);
    else if (key.startsWith("GNU.sparse.")) records[SPARSE] = "";
    at += length;
  }
  return records;
}

function number(block: Buffer, offset: number, length: number): number {
  const first = block[offset] ?? 0;
  if ((first & 0x80) !== 0) {
    // Base 256, for values that do not fit into octal digits; negative values are meaningless here.
    if (first !== 0x80) throw brokenArchiveError("a number is negative or too large");
    let value = 0;
    for (let index = offset + 1; index < offset + length; index += 1) value = value * 256 + (block[index] ?? 0);
    if (!Number.isSafeInteger(value)) throw brokenArchiveError("a number is too large");
    return value;
  }
  const digits = block
    .toString("latin1", offset, offset + length)
    .replace(/\0.*$/s, "")
    .trim();
  if (digits === "") return 0;
  if (!/^[0-7]+$/.test(digits)) throw brokenArchiveError("a number has invalid digits");
  return Number.parseInt(digits, 8);
}

function cut(bytes: Buffer): string {
  const end = bytes.indexOf(0);
  return bytes.toString("latin1", 0, end < 0 ? bytes.length : end);
}

const isEmpty = (block: Buffer) => block.every((byte) => byte === 0);

function brokenArchiveError(what: string): CaissonError {
  return new CaissonError("invalid", `invalid tar archive: ${what}`);
}

/** Returns a reader that takes bytes from chunks of any size. */
function createByteReader(source: AsyncIterable<Uint8Array>) {
  const iterator = source[Symbol.asyncIterator]();
  let rest: Buffer = Buffer.alloc(0);
  const more = async () => {
    while (rest.length === 0) {
      const next = await iterator.next();
      if (next.done === true) return false;
      rest = Buffer.from(next.value.buffer, next.value.byteOffset, next.value.byteLength);
    }
    return true;
  };
  const pull = (length: number) => {
    const part = rest.subarray(0, length);
    rest = rest.subarray(part.length);
    return part;
  };
  async function take(length: number, options: { endAllowed: true }): Promise<Buffer | null>;
  async function take(length: number): Promise<Buffer>;
  async function take(length: number, options?: { endAllowed: true }): Promise<Buffer | null> {
    const parts: Buffer[] = [];
    let got = 0;
    while (got < length) {
      if (!(await more())) {
        if (got === 0 && options?.endAllowed === true) return null;
        throw brokenArchiveError("it ends too early");
      }
      const part = pull(length - got);
      parts.push(part);
      got += part.length;
    }
    return parts.length === 1 && parts[0] !== undefined ? parts[0] : Buffer.concat(parts);
  }
  return {
    take,
    async *stream(left: { value: number }): AsyncGenerator<Uint8Array> {
      while (left.value > 0) {
        if (!(await more())) throw brokenArchiveError("it ends too early");
        const part = pull(left.value);
        left.value -= part.length;
        yield part;
      }
    },
    async drain() {
      rest = Buffer.alloc(0);
      while (await more()) rest = Buffer.alloc(0);
    },
    async close() {
      await iterator.return?.();
    },
  };
}
