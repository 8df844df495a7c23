import { constants, open } from "node:fs/promises";
import { CaissonError } from "../../contract/error.ts";
import type { ReadSecretFile } from "./secret-book.ts";

/** Reads a secret's file. Throws `invalid` for what is no regular file, `too_large`, or the file system's own error. */
export const readSecretFile: ReadSecretFile = async (path, { bytesMax }) => {
  // Without waiting: opening a pipe would wait for its writer.
  const handle = await open(path, constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOCTTY);
  try {
    const found = await handle.stat();
    if (!found.isFile()) throw new CaissonError("invalid", "it is not a regular file");
    const buffer = Buffer.alloc(bytesMax + 1);
    let length = 0;
    while (length < buffer.length) {
      const { bytesRead } = await handle.read(buffer, length, buffer.length - length, length);
      if (bytesRead === 0) break;
      length += bytesRead;
    }
    if (length > bytesMax) throw new CaissonError("too_large", `it has more than ${bytesMax} bytes`);
    return { text: buffer.toString("utf8", 0, length), mode: found.mode & 0o777 };
  } finally {
    await handle.close();
  }
};
