import { open } from "node:fs/promises";
import { join } from "node:path";
import { CaissonError } from "../../../contract/error/error.ts";
import { readRawTar } from "../../../sandbox/tar/tar-reader.ts";
import { decompress } from "./decompress.ts";
import { type ImageStore, notAnImage, openPlainFile } from "./image-store.ts";

const PARTS_MAX = 4096;
const ALIASES_MAX = 8;

/**
 * Unpacks an image archive (`docker save`, oci-archive; plain, gzip or zstd) into a folder of ours, each part under a
 * number, so that no name in the archive ever becomes a path. Throws `invalid`, `too_large`.
 */
export async function archiveStore(options: { archive: string; folder: string; bytesMax: number }): Promise<ImageStore> {
  const { archive, folder, bytesMax } = options;
  const parts = new Map<string, string>();
  // Old archives store a repeated layer once, with links to it.
  const aliases = new Map<string, string>();
  const file = await openPlainFile(archive, bytesMax);
  let bytes = 0;
  try {
    const source = file.createReadStream({ highWaterMark: 256 * 1024, autoClose: false });
    for await (const entry of readRawTar(limitBytes(decompress(chunks(source)), bytesMax), { drain: true })) {
      const name = normal(entry.name);
      if (parts.size + aliases.size >= PARTS_MAX) throw new CaissonError("too_large", `${archive} has more than ${PARTS_MAX} parts`);
      if (entry.kind === "link") aliases.set(name, normal(join("/", name, "..", entry.linkName)));
      if (entry.kind === "hardLink") aliases.set(name, normal(entry.linkName));
      if (entry.kind !== "file") continue;
      bytes += entry.size;
      if (bytes > bytesMax) throw new CaissonError("too_large", `${archive} contains more than ${bytesMax} bytes`);
      const path = join(folder, String(parts.size));
      await save(path, entry.content);
      parts.set(name, path);
    }
  } catch (cause) {
    if (cause instanceof CaissonError && cause.code !== "invalid") throw cause;
    const code = (cause as NodeJS.ErrnoException).code;
    if (code === "ENOSPC" || code === "EDQUOT")
      throw new CaissonError("no_space", `the disk is full: ${archive} could not be read`, { cause });
    const refused = notAnImage(archive);
    throw new CaissonError("invalid", refused.message, { ...(refused.hint === undefined ? {} : { hint: refused.hint }), cause });
  } finally {
    await file.close();
  }
  return {
    name: archive,
    find(name) {
      let current = normal(name);
      for (let hops = 0; hops < ALIASES_MAX && aliases.has(current); hops += 1) current = aliases.get(current) ?? "";
      return parts.get(current) ?? null;
    },
  };
}

function normal(name: string): string {
  return join("/", name).slice(1).replace(/\/$/, "");
}

async function save(path: string, content: AsyncIterable<Uint8Array>): Promise<void> {
  const file = await open(path, "wx", 0o600);
  try {
    for await (const chunk of content) await file.writeFile(chunk);
  } finally {
    await file.close();
  }
}

async function* chunks(source: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  yield* source;
}

/** Also counts padding and any data after the archive's end, where a bomb could hide. */
async function* limitBytes(source: AsyncIterable<Uint8Array>, bytesMax: number): AsyncGenerator<Uint8Array> {
  let bytes = 0;
  for await (const chunk of source) {
    bytes += chunk.length;
    if (bytes > bytesMax * 2) throw new CaissonError("too_large", `the archive contains more than ${bytesMax} bytes`);
    yield chunk;
  }
}
