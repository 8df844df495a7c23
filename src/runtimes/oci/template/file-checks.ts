import { closeSync, openSync, readFileSync, readSync } from "node:fs";
import { ifErrnoSync, UNREACHABLE } from "../../../lib/failures.ts";
import { lstatOrNull } from "../../../lib/paths.ts";

const SETTINGS_BYTES_MAX = 64 * 1024;

export function isFolder(path: string): boolean {
  return lstatOrNull(path)?.isDirectory() ?? false;
}
export function isFile(path: string): boolean {
  return lstatOrNull(path)?.isFile() ?? false;
}

export function isElf(path: string): boolean {
  return isFile(path) && readStart(path, 4).toString("latin1") === "\x7fELF";
}

/** Returns the text of a small regular file, or an empty string for anything else. */
export function readSmall(path: string): string {
  const stat = lstatOrNull(path);
  if (stat === null || !stat.isFile() || stat.size > SETTINGS_BYTES_MAX) return "";
  return ifErrnoSync(() => readFileSync(path, "utf8"), UNREACHABLE, "");
}

function readStart(path: string, length: number): Buffer {
  const fd = ifErrnoSync(() => openSync(path, "r"), UNREACHABLE, null);
  if (fd === null) return Buffer.alloc(0);
  const buffer = Buffer.alloc(length);
  try {
    readSync(fd, buffer, 0, length, 0);
  } finally {
    closeSync(fd);
  }
  return buffer;
}
