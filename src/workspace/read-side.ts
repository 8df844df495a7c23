import type { FileHandle } from "node:fs/promises";
import { CaissonError } from "../contract/error/error.ts";
import { isErrno } from "../lib/failures.ts";
import type { Sandbox } from "../sandbox/sandbox.ts";
import type { FileSide } from "./change.ts";
import type { FolderTree } from "./folder-tree.ts";

const FILE_BYTES_MAX = 64 * 1024 * 1024;
const READ_BYTES_MIN = 4096;
const READ_BYTES_MAX = 8 * 1024 * 1024;

/** The replacement character in names that are not UTF-8. No request can name such a file. */
export const UNNAMEABLE = "\ufffd";

/** Creates the error that leaves a file out of a diff. */
function unreadable(code: "unsupported" | "too_large" | "denied", reason: string): CaissonError {
  return new CaissonError(code, reason);
}

/**
 * Reads a user's file, without following links in any part of the path. Returns null if it is not a regular file or
 * link. Throws `too_large`, `denied`.
 */
export async function readLower(tree: FolderTree, path: string): Promise<FileSide | null> {
  const target = tree.readLink(path);
  if (target !== null) return { kind: "link", mode: 0o777, content: target };
  const file = await tree.openFile(path).catch((cause: unknown) => {
    if (isErrno(cause, "EACCES", "EPERM")) throw unreadable("denied", "the file outside is not readable");
    throw cause;
  });
  if (!file) return null;
  try {
    const { size, mode } = await file.stat();
    checkSize(size);
    return { kind: "file", mode: mode & 0o111 ? 0o755 : 0o644, content: await readBounded(file, size) };
  } finally {
    await file.close();
  }
}

/** Returns null for a user's file that is too large or may not be read. Throws every other failure. */
export function ifUnreadable(error: unknown): null {
  const code = error instanceof CaissonError ? error.code : (error as NodeJS.ErrnoException).code;
  if (code === "denied" || code === "too_large" || code === "EACCES" || code === "EPERM") return null;
  throw error;
}

/** Reads a file that may grow in the meantime. */
async function readBounded(file: FileHandle, sizeBytes: number): Promise<Buffer> {
  const pieces: Buffer[] = [];
  let bytes = 0;
  for (;;) {
    const piece = Buffer.allocUnsafe(Math.min(Math.max(sizeBytes + 1 - bytes, READ_BYTES_MIN), READ_BYTES_MAX));
    const { bytesRead } = await file.read(piece, 0, piece.length);
    if (bytesRead === 0) return pieces.length === 1 ? (pieces[0] as Buffer) : Buffer.concat(pieces);
    bytes += bytesRead;
    checkSize(bytes);
    pieces.push(piece.subarray(0, bytesRead));
  }
}

/**
 * Reads a file of the workspace through the guest, or returns null if it does not exist. Throws `too_large`, `denied`,
 * and `unsupported` for a kind that a diff cannot show.
 */
export async function readInside(sandbox: Sandbox, path: string): Promise<FileSide | null> {
  const found = await sandbox.stat(path, { follow: false }).catch(absent);
  if (!found || found.kind === "directory") return null;
  if (found.kind === "link") {
    const target = found.linkTarget ?? "";
    if (target.includes(UNNAMEABLE)) throw unreadable("unsupported", "the link's target is not UTF-8");
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
    throw unreadable("denied", "its permissions exclude even the sandbox's user");
  throw error;
}

function checkSize(bytes: number): void {
  if (bytes > FILE_BYTES_MAX) throw unreadable("too_large", `it is larger than ${FILE_BYTES_MAX / 1024 / 1024} MiB`);
}
