import type { FileHandle } from "node:fs/promises";
import { CaissonError } from "../contract/error.ts";
import { isErrno } from "../lib/is-errno.ts";
import type { Sandbox } from "../sandbox/sandbox.ts";
import type { FileSide } from "./change.ts";
import type { FolderTree } from "./folder-tree.ts";

const FILE_BYTES_MAX = 64 * 1024 * 1024;
const READ_BYTES_MIN = 4096;
const READ_BYTES_MAX = 8 * 1024 * 1024;

/** What a name that is not UTF-8 is shown with; no request could name such a file. */
export const UNNAMEABLE = "\ufffd";

/** Why a file is not part of a diff; thrown as `unsupported`, `too_large` or `denied`. */
function unreadable(code: "unsupported" | "too_large" | "denied", reason: string): CaissonError {
  return new CaissonError(code, reason);
}

/**
 * A file of the user's own; no link is followed, on the way or at the end. Null when there is none; folders and others
 * are none. Throws `too_large`, `denied`.
 */
export async function readLower(tree: FolderTree, path: string): Promise<FileSide | null> {
  const target = tree.readLink(path);
  if (target !== null) return { kind: "link", mode: 0o777, content: target };
  const file = await tree.openFile(path).catch((cause: unknown) => {
    if (isErrno(cause, "EACCES", "EPERM")) throw unreadable("denied", "the file outside cannot be read");
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

/** It may grow while it is read. */
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
 * A file of the workspace inside, read by the guest. Null when there is none. Throws `too_large`, `denied`,
 * `unsupported` for what a diff has no form for.
 */
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
