import { closeSync, openSync, readFileSync, readSync } from "node:fs";
import { lstatOrNull } from "../../../lib/lstat-or-null.ts";

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

/** The text of a small regular file, or nothing. */
export function readSmall(path: string): string {
  const stat = lstatOrNull(path);
  if (stat === null || !stat.isFile() || stat.size > SETTINGS_BYTES_MAX) return "";
  try {
    return readFileSync(path, "utf8");
  } catch {
    return "";
  }
}

function readStart(path: string, length: number): Buffer {
  const buffer = Buffer.alloc(length);
  try {
    const fd = openSync(path, "r");
    try {
      readSync(fd, buffer, 0, length, 0);
    } finally {
      closeSync(fd);
    }
  } catch {
    return Buffer.alloc(0);
  }
  return buffer;
}
