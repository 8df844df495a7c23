import { Readable } from "node:stream";
import { createGunzip } from "node:zlib";
import { CaissonError } from "../../../contract/error/error.ts";
import type { BuildContext, ContextEntry } from "../context/build-context.ts";
import { contextBounds } from "../context/find-sources.ts";
import { type NewOwner, rewriteTar } from "./rewrite-tar.ts";

/** An archive of the context that ADD unpacks. */
export interface LocalArchive {
  open(options: { owner: NewOwner | undefined }): AsyncIterable<Uint8Array>;
}

const MAGIC_AT = 257;
const HEAD_BYTES = 512;
const packed: readonly { name: string; magic: readonly number[] }[] = [
  { name: "xz", magic: [0xfd, 0x37, 0x7a, 0x58, 0x5a] },
  { name: "bzip2", magic: [0x42, 0x5a, 0x68] },
  { name: "zstd", magic: [0x28, 0xb5, 0x2f, 0xfd] },
];

/**
 * Returns the archive if a file is a tar archive, plain or with gzip, by its content. Throws `unsupported` for an
 * archive with another compression: copying it unopened would surprise.
 */
export async function archiveOf(context: BuildContext, entry: ContextEntry): Promise<LocalArchive | null> {
  const head = await headOf(context.read(entry), HEAD_BYTES);
  if (isTar(head)) return { open: (options) => unpacking(context.read(entry), options) };
  if (head[0] === 0x1f && head[1] === 0x8b) {
    const unzipped = await headOf(gunzip(context.read(entry)), HEAD_BYTES);
    return isTar(unzipped) ? { open: (options) => unpacking(gunzip(context.read(entry)), options) } : null;
  }
  const other = packed.find(({ magic }) => magic.every((byte, at) => head[at] === byte));
  if (other === undefined || !/\.(?:tar\.\w+|t[bx]z2?|tzst)$/.test(entry.path)) return null;
  throw new CaissonError(
    "unsupported",
    `ADD cannot unpack ${JSON.stringify(entry.path.slice(0, 200))}: it is compressed with ${other.name}`,
    {
      hint: "Compress it with gzip, or COPY it and unpack it with RUN.",
    },
  );
}

const isTar = (head: Buffer) => head.length === HEAD_BYTES && head.toString("latin1", MAGIC_AT, MAGIC_AT + 5) === "ustar";

const unpacking = (bytes: AsyncIterable<Uint8Array>, { owner }: { owner: NewOwner | undefined }) =>
  rewriteTar(bytes, {
    owner,
    bytesMax: contextBounds.bytesMax,
    entriesMax: contextBounds.entriesMax,
    rename: (name) => name.replace(/^\/+/, ""),
  });

async function headOf(bytes: AsyncIterable<Uint8Array>, length: number): Promise<Buffer> {
  const pieces: Uint8Array[] = [];
  let left = length;
  for await (const piece of bytes) {
    pieces.push(piece.subarray(0, left));
    left -= Math.min(left, piece.length);
    if (left === 0) break;
  }
  return Buffer.concat(pieces);
}

/** Throws `invalid` for damaged data. */
async function* gunzip(bytes: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  const source = Readable.from(bytes);
  const unzipped = createGunzip();
  source.once("error", (error) => unzipped.destroy(error));
  try {
    for await (const piece of source.pipe(unzipped)) yield piece as Uint8Array;
  } catch (cause) {
    if (cause instanceof CaissonError) throw cause;
    throw new CaissonError("invalid", "the archive is not valid gzip data", { cause });
  } finally {
    source.destroy();
    unzipped.destroy();
  }
}
