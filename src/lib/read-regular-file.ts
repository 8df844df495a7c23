import { constants, open } from "node:fs/promises";

export interface RegularFile {
  bytes: Buffer;
  mode: number;
  uid: number;
}

const CHUNK_BYTES = 65_536;

/**
 * Reads an untrusted file, or returns why it cannot. Unlike `readFile` it neither waits for the writer of a pipe nor
 * reads an endless device. Throws the file system's own error.
 */
export async function readRegularFile(
  path: string,
  { bytesMax }: { bytesMax: number },
): Promise<RegularFile | "not a regular file" | "too large"> {
  const handle = await open(path, constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOCTTY);
  try {
    const found = await handle.stat();
    if (!found.isFile()) return "not a regular file";
    const chunks: Buffer[] = [];
    let length = 0;
    for (;;) {
      const { bytesRead, buffer } = await handle.read(Buffer.alloc(CHUNK_BYTES), 0, CHUNK_BYTES, length);
      if (bytesRead === 0) break;
      length += bytesRead;
      if (length > bytesMax) return "too large";
      chunks.push(buffer.subarray(0, bytesRead));
    }
    return { bytes: Buffer.concat(chunks), mode: found.mode & 0o777, uid: found.uid };
  } finally {
    await handle.close();
  }
}
