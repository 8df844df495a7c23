import { createHash } from "node:crypto";
import { createWriteStream } from "node:fs";
import { mkdir } from "node:fs/promises";
import { dirname, join } from "node:path";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { CaissonError } from "../../contract/error/error.ts";
import { readTar } from "./read-tar.ts";

const FILES_MAX = 1000;
const LAYOUT_FILE = /^(?:oci-layout|index\.json|blobs\/sha256\/([0-9a-f]{64}))$/;

/**
 * Unpacks the archive of an OCI layout into a new folder. The archive is not trusted: throws `protocol` for anything
 * that is not a file of a layout, and for content that does not have its digest.
 */
export async function unpackLayout(folder: string, archive: AsyncIterable<Uint8Array>): Promise<void> {
  await mkdir(folder, { mode: 0o755 });
  let files = 0;
  for await (const { name, kind, content } of readTar(archive)) {
    const match = LAYOUT_FILE.exec(name);
    files += 1;
    if (match === null || kind !== "file" || files > FILES_MAX)
      throw new CaissonError("protocol", `${JSON.stringify(name.slice(0, 200))} is not part of an OCI layout`);
    await mkdir(dirname(join(folder, name)), { recursive: true });
    await pipeline(Readable.from(checkDigest(content, match[1])), createWriteStream(join(folder, name), { flags: "wx", flush: true }));
  }
}

async function* checkDigest(content: AsyncIterable<Uint8Array>, digest: string | undefined): AsyncGenerator<Uint8Array> {
  const hash = createHash("sha256");
  for await (const piece of content) {
    hash.update(piece);
    yield piece;
  }
  if (digest !== undefined && hash.digest("hex") !== digest)
    throw new CaissonError("protocol", "a file of the OCI layout does not match its digest");
}
