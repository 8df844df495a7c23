import { pipeline, Readable } from "node:stream";
import { createGunzip, createZstdDecompress } from "node:zlib";

/**
 * Yields gzip or zstd data decompressed, and other data unchanged. Decides by the first bytes, not by the manifest.
 * Errors are the stream's own.
 */
export async function* decompress(source: AsyncGenerator<Buffer>): AsyncGenerator<Uint8Array> {
  const first = await source.next();
  if (first.done === true) return;
  const head = first.value;
  const all = (async function* () {
    yield head;
    yield* source;
  })();
  if (head[0] === 0x1f && head[1] === 0x8b) yield* through(all, createGunzip());
  else if (head.length >= 4 && head.readUInt32LE(0) === 0xfd2fb528) yield* through(all, createZstdDecompress());
  else yield* all;
}

async function* through(source: AsyncIterable<Buffer>, transform: NodeJS.ReadWriteStream): AsyncGenerator<Uint8Array> {
  const output = pipeline(Readable.from(source), transform, () => {});
  for await (const chunk of output as AsyncIterable<Buffer>) yield chunk;
}
