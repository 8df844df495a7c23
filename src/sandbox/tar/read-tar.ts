import { CaissonError } from "../../contract/error.ts";
import type { Bytes } from "../sandbox.ts";
import { BLOCK_BYTES, decodePax, decodeTarBlock, type TarHeader, type TarKind } from "./tar-header.ts";

/** One entry; its content, if it is not read, is passed over when the next entry is asked for. */
export interface TarEntry extends TarHeader {
  content: AsyncIterable<Uint8Array>;
}

/** A pax header or a GNU long name: two paths and a few numbers. */
const EXTENSION_BYTES_MAX = 65_536;
const PATH_BYTES_MAX = 4_095;

const kinds: Readonly<Record<string, TarKind>> = { "0": "file", "\0": "file", "7": "file", "1": "hardLink", "2": "link", "5": "directory" };

/**
 * The entries of an archive as it streams by: ustar, pax and GNU long names. Throws `invalid` for what is no archive or is
 * cut short, `unsafe` for devices, FIFOs and names over 4,095 bytes. Names and targets are not checked further here.
 */
export async function* readTar(archive: Bytes): AsyncGenerator<TarEntry, void, void> {
  const reader = new BlockReader(archive);
  let pax: Record<string, string> = {};
  let longName: string | undefined;
  let longTarget: string | undefined;
  try {
    while (true) {
      const block = await reader.block();
      const decoded = block === null ? null : decodeTarBlock(block);
      if (decoded === null) return;
      const { typeFlag, header } = decoded;
      if (typeFlag === "x" || typeFlag === "g" || typeFlag === "L" || typeFlag === "K") {
        const text = await reader.whole(header.sizeBytes);
        if (typeFlag === "x") pax = decodePax(text);
        else if (typeFlag === "L") longName = untilNul(text);
        else if (typeFlag === "K") longTarget = untilNul(text);
        continue;
      }
      const entry = joined(header, { pax, longName, longTarget });
      pax = {};
      longName = undefined;
      longTarget = undefined;
      const kind = kinds[typeFlag];
      if (kind === undefined)
        throw new CaissonError("unsafe", `the archive holds ${JSON.stringify(entry.name)}, which is neither file, folder nor link`);
      const isOldFolder = kind === "file" && entry.name.endsWith("/");
      const body = reader.body(kind === "file" && !isOldFolder ? entry.sizeBytes : 0);
      yield { ...entry, kind: isOldFolder ? "directory" : kind, content: body };
      await body.skip();
    }
  } finally {
    await reader.close();
  }
}

function joined(
  header: Omit<TarHeader, "kind">,
  more: { pax: Record<string, string>; longName: string | undefined; longTarget: string | undefined },
): Omit<TarHeader, "kind"> {
  const { pax } = more;
  const name = pax.path ?? more.longName ?? header.name;
  const linkTarget = pax.linkpath ?? more.longTarget ?? header.linkTarget;
  const sizeBytes = pax.size === undefined ? header.sizeBytes : Number(pax.size);
  const modifiedMs = pax.mtime === undefined ? header.modifiedMs : Math.round(Number(pax.mtime) * 1000);
  if (!Number.isSafeInteger(sizeBytes) || sizeBytes < 0) throw new CaissonError("invalid", "the archive holds an impossible size");
  for (const path of [name, linkTarget]) {
    if (Buffer.byteLength(path) > PATH_BYTES_MAX) throw new CaissonError("unsafe", "the archive holds a name of more than 4,095 bytes");
  }
  return { ...header, name, linkTarget, sizeBytes, modifiedMs: Number.isFinite(modifiedMs) ? modifiedMs : 0 };
}

function untilNul(bytes: Buffer): string {
  const end = bytes.indexOf(0);
  return bytes.toString("utf8", 0, end < 0 ? bytes.length : end);
}

/** Hands out exact pieces of a byte stream, holding no more than one of its chunks. */
class BlockReader {
  readonly #source: AsyncIterator<Uint8Array>;
  #chunk: Uint8Array = new Uint8Array(0);
  #at = 0;

  constructor(archive: Bytes) {
    this.#source = archive instanceof Uint8Array ? once(archive) : archive[Symbol.asyncIterator]();
  }

  /** The next block; null at a clean end. */
  async block(): Promise<Buffer | null> {
    const first = await this.some(BLOCK_BYTES);
    if (first === null) return null;
    if (first.length === BLOCK_BYTES) return asBuffer(first);
    return Buffer.concat([first, await this.exactly(BLOCK_BYTES - first.length)]);
  }

  async whole(sizeBytes: number): Promise<Buffer> {
    if (sizeBytes > EXTENSION_BYTES_MAX) throw new CaissonError("unsafe", `the archive holds a header of ${sizeBytes} bytes`);
    const bytes = await this.exactly(sizeBytes);
    await this.exactly(paddingOf(sizeBytes));
    return bytes;
  }

  /** The content of an entry, to be read once, and its padding. */
  body(sizeBytes: number): AsyncIterable<Uint8Array> & { skip(): Promise<void> } {
    let left = sizeBytes;
    let padded = false;
    const next = async (): Promise<Uint8Array | null> => {
      if (left > 0) {
        const piece = await this.some(left);
        if (piece === null) throw new CaissonError("invalid", "the archive is cut short");
        left -= piece.length;
        return piece;
      }
      if (!padded) {
        padded = true;
        await this.exactly(paddingOf(sizeBytes));
      }
      return null;
    };
    return {
      async *[Symbol.asyncIterator]() {
        for (let piece = await next(); piece !== null; piece = await next()) yield piece;
      },
      async skip() {
        while ((await next()) !== null);
      },
    };
  }

  async close(): Promise<void> {
    await this.#source.return?.();
  }

  async exactly(bytes: number): Promise<Buffer> {
    const pieces: Uint8Array[] = [];
    for (let left = bytes; left > 0; ) {
      const piece = await this.some(left);
      if (piece === null) throw new CaissonError("invalid", "the archive is cut short");
      pieces.push(piece);
      left -= piece.length;
    }
    return pieces.length === 1 ? asBuffer(pieces[0] as Uint8Array) : Buffer.concat(pieces);
  }

  /** Between one and `most` bytes; null at the end. */
  async some(most: number): Promise<Uint8Array | null> {
    while (this.#at === this.#chunk.length) {
      const { done, value } = await this.#source.next();
      if (done) return null;
      this.#chunk = value;
      this.#at = 0;
    }
    const piece = this.#chunk.subarray(this.#at, this.#at + most);
    this.#at += piece.length;
    return piece;
  }
}

function paddingOf(bytes: number): number {
  return (BLOCK_BYTES - (bytes % BLOCK_BYTES)) % BLOCK_BYTES;
}

async function* once(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  yield bytes;
}

function asBuffer(bytes: Uint8Array): Buffer {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}
