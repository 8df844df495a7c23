import { createHash } from "node:crypto";
import { lstatSync, mkdirSync } from "node:fs";
import { CaissonError } from "../../../contract/error/error.ts";
import { ignore } from "../../../lib/failures.ts";
import { decompress } from "./decompress.ts";
import { type LayerFile, openPlainFile } from "./image-store.ts";
import { createLayerUnpacker } from "./layer-unpacker.ts";

export interface UnpackRequest {
  layers: LayerFile[];
  /** Must not exist yet. */
  target: string;
  keepOwners: boolean;
  bytesMax: number;
  entriesMax: number;
}

/** Folders that sandboxes mount over. A link there would redirect the mount. */
const mustBeFolders = ["dev", "etc", "proc", "sys"];

/**
 * Unpacks the layers on top of each other, and checks the digests of each. On failure, the caller removes the target.
 * Throws `unsafe` for any trick, `invalid` for damage, `too_large`, `no_space`.
 */
export async function unpackImage(request: UnpackRequest): Promise<{ entries: number; bytes: number; leftOut: number }> {
  const { layers, target, bytesMax } = request;
  mkdirSync(target, { mode: 0o755 });
  const unpacker = createLayerUnpacker(request);
  let expanded = 0;
  for (const layer of layers) {
    const file = await openPlainFile(layer.path, Number.MAX_SAFE_INTEGER);
    const packed = createHash("sha256");
    const plain = createHash("sha256");
    const source = file.createReadStream({ highWaterMark: 256 * 1024 });
    const contents = (async function* () {
      for await (const chunk of decompress(hashWhileReading(source, packed))) {
        expanded += chunk.length;
        // Headers and padding add to the size of the files. Beyond twice the bound, it is a bomb.
        if (expanded > bytesMax * 2)
          throw new CaissonError("too_large", `the image was refused: its layers contain more than ${bytesMax} bytes`);
        plain.update(chunk);
        yield chunk;
      }
    })();
    try {
      await unpacker.add(contents);
    } catch (cause) {
      throw toUnpackError(cause, layer);
    } finally {
      source.destroy();
      await ignore(file.close(), "read to its end, or we throw the first error");
    }
    verify(layer.digest, packed.digest("hex"));
    verify(layer.diffId, plain.digest("hex"));
  }
  checkRoot(target);
  return unpacker.counts;
}

/** Throws `unsafe` if a root file system has a link where sandboxes mount something. */
export function checkRoot(root: string): void {
  for (const name of mustBeFolders) {
    const stat = lstatSync(`${root}/${name}`, { throwIfNoEntry: false });
    if (stat === undefined || stat.isDirectory()) continue;
    throw new CaissonError("unsafe", `the image was refused: its /${name} is not a folder`, {
      hint: "Replace it with a folder: a link there would redirect what sandboxes mount.",
    });
  }
}

async function* hashWhileReading(source: AsyncIterable<Buffer>, hash: ReturnType<typeof createHash>): AsyncGenerator<Buffer> {
  for await (const chunk of source) {
    hash.update(chunk);
    yield chunk;
  }
}

function verify(expected: string | null, actual: string): void {
  if (expected === null || expected === `sha256:${actual}`) return;
  throw new CaissonError("invalid", `the image is damaged: a layer should be ${expected} but is sha256:${actual}`);
}

function toUnpackError(cause: unknown, layer: LayerFile): unknown {
  if (cause instanceof CaissonError) return cause;
  const code = (cause as NodeJS.ErrnoException).code ?? "";
  const message = `the layer ${layer.diffId} could not be unpacked`;
  if (code === "ENOSPC" || code === "EDQUOT") return new CaissonError("no_space", `${message}: the disk is full`, { cause });
  if (code === "ENAMETOOLONG") return new CaissonError("invalid", `${message}: a name in it is too long`, { cause });
  // Node's error codes for compressed data that is damaged.
  if (code.startsWith("Z_") || code.startsWith("ZSTD_") || code.startsWith("ERR_ZSTD"))
    return new CaissonError("invalid", `${message}: it is damaged`, { cause });
  return new CaissonError("internal", `${message}${code === "" ? "" : ` (${code})`}`, { cause });
}
