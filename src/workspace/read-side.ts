import { constants } from "node:fs";
import { lstat, open, readlink } from "node:fs/promises";
import { CaissonError } from "../contract/error.ts";
import type { Sandbox } from "../sandbox/sandbox.ts";
import type { FileSide } from "./change.ts";

const FILE_BYTES_MAX = 64 * 1024 * 1024;

/** What a name that is not UTF-8 is shown with; no request could name such a file. */
export const UNNAMEABLE = "\ufffd";

/** Why a file is not part of a diff; thrown as `unsupported`, `too_large` or `denied`. */
function unreadable(code: "unsupported" | "too_large" | "denied", reason: string): CaissonError {
  return new CaissonError(code, reason);
}

/** A file of the user's own; a link is not followed. Null when there is none; folders and others are none. Throws `too_large`, `denied`. */
export async function readLower(path: string): Promise<FileSide | null> {
  const found = await lstat(path).catch(() => null);
  if (!found) return null;
  if (found.isSymbolicLink()) return { kind: "link", mode: 0o777, content: await readlink(path, "buffer") };
  if (!found.isFile()) return null;
  checkSize(found.size);
  const file = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK).catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT") return null;
    throw unreadable("denied", "the file outside cannot be read");
  });
  if (!file) return null;
  try {
    return { kind: "file", mode: found.mode & 0o111 ? 0o755 : 0o644, content: await file.readFile() };
  } finally {
    await file.close();
  }
}

/** A file of the workspace inside, read by the guest. Null when there is none. Throws `too_large`, `denied`, `unsupported` for what a diff has no form for. */
export async function readInside(sandbox: Sandbox, path: string): Promise<FileSide | null> {
  const found = await sandbox.stat(path, { follow: false }).catch(absent);
  if (!found || found.kind === "directory") return null;
  if (found.kind === "link") {
    const target = found.linkTarget ?? "";
    if (target.includes(UNNAMEABLE)) throw unreadable("unsupported", "where the link leads is not UTF-8");
    return { kind: "link", mode: 0o777, content: Buffer.from(target) };
  }
  if (found.kind !== "file") throw unreadable("unsupported", `it is a ${found.kind}`);
  checkSize(found.sizeBytes);
  const pieces: Uint8Array[] = [];
  let bytes = 0;
  for await (const piece of await sandbox.readFile(path).catch(notReadable)) {
    bytes += piece.length;
    checkSize(bytes);
    pieces.push(piece);
  }
  return { kind: "file", mode: found.mode & 0o111 ? 0o755 : 0o644, content: Buffer.concat(pieces) };
}

function absent(error: unknown): null {
  if (error instanceof CaissonError && (error.code === "not_found" || error.code === "invalid")) return null;
  return notReadable(error);
}

function notReadable(error: unknown): never {
  if (error instanceof CaissonError && error.code === "denied")
    throw unreadable("denied", "its permissions keep even the sandbox's user out");
  throw error;
}

function checkSize(bytes: number): void {
  if (bytes > FILE_BYTES_MAX) throw unreadable("too_large", `it is larger than ${FILE_BYTES_MAX / 1024 / 1024} MiB`);
}
