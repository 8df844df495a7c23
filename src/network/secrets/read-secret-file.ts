import { CaissonError } from "../../contract/error/error.ts";
import { readRegularFile } from "../../lib/read-regular-file.ts";
import type { ReadSecretFile } from "./secret-book.ts";

/** Reads a secret's file. Throws `invalid` if it is not a regular file, `too_large`, or the file system's own error. */
export const readSecretFile: ReadSecretFile = async (path, { bytesMax }) => {
  const found = await readRegularFile(path, { bytesMax });
  if (found === "not a regular file") throw new CaissonError("invalid", "it is not a regular file");
  if (found === "too large") throw new CaissonError("too_large", `it has more than ${bytesMax} bytes`);
  return { text: found.bytes.toString("utf8"), mode: found.mode };
};
