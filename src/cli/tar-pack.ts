import { constants } from "node:fs";
import { lstat, open, readdir, readlink } from "node:fs/promises";
import { join } from "node:path";
import { CaissonError } from "../contract/error.ts";
import { BLOCK_BYTES, encodeHeader, padding } from "./tar-format.ts";

const CHUNK_BYTES = 256 * 1024;

/** A folder of ours as a tar archive, entries relative to it. Sockets, pipes and devices are left out; links stay links. */
export async function* packFolder(folder: string): AsyncGenerator<Uint8Array> {
  yield* packEntries(folder, "");
  yield new Uint8Array(2 * BLOCK_BYTES);
}

async function* packEntries(folder: string, prefix: string): AsyncGenerator<Uint8Array> {
  for (const name of (await readdir(folder)).sort()) {
    const path = join(folder, name);
    const stat = await lstat(path);
    const entry = { name: `${prefix}${name}`, linkTarget: "", sizeBytes: 0, mode: stat.mode & 0o777, modifiedSeconds: stat.mtimeMs / 1000 };
    if (stat.isDirectory()) {
      yield encodeHeader({ ...entry, kind: "directory", name: `${entry.name}/` });
      yield* packEntries(path, `${entry.name}/`);
    } else if (stat.isSymbolicLink()) {
      yield encodeHeader({ ...entry, kind: "link", linkTarget: await readlink(path) });
    } else if (stat.isFile()) {
      yield* packFile(path, entry);
    }
  }
}

async function* packFile(
  path: string,
  entry: { name: string; linkTarget: string; mode: number; modifiedSeconds: number },
): AsyncGenerator<Uint8Array> {
  const handle = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  try {
    const { size } = await handle.stat();
    yield encodeHeader({ ...entry, kind: "file", sizeBytes: size });
    let left = size;
    while (left > 0) {
      const { bytesRead, buffer } = await handle.read({ buffer: Buffer.allocUnsafe(Math.min(CHUNK_BYTES, left)) });
      if (bytesRead === 0) throw new CaissonError("conflict", `${path} became shorter while it was copied`);
      left -= bytesRead;
      yield buffer.subarray(0, bytesRead);
    }
    yield padding(size);
  } finally {
    await handle.close();
  }
}
