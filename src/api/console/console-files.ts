import { createHash } from "node:crypto";
import { readdir, readFile } from "node:fs/promises";
import { extname, join } from "node:path";
import { promisify } from "node:util";
import { gzip } from "node:zlib";
import { ABSENT, ifErrno } from "../../lib/failures.ts";

/** More files than any build of the console has. */
const FILES_MAX = 2_000;

const types: Readonly<Record<string, string>> = {
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript; charset=utf-8",
  ".css": "text/css; charset=utf-8",
  ".svg": "image/svg+xml",
  ".json": "application/json",
  ".webmanifest": "application/manifest+json",
  ".woff2": "font/woff2",
  ".png": "image/png",
  ".ico": "image/x-icon",
};

export interface ConsoleFile {
  bytes: Uint8Array<ArrayBuffer>;
  /** The compressed content; null if it is not smaller. */
  packed: Uint8Array<ArrayBuffer> | null;
  type: string;
  etag: string;
  /** Whether the file name changes with its content. */
  isHashed: boolean;
}

/**
 * Reads and compresses the built console. Returns its files by path, such as `/assets/main-4f2a.js`, or nothing if
 * there is no build.
 */
export async function readConsoleFiles(folder: string): Promise<ReadonlyMap<string, ConsoleFile>> {
  const entries = await ifErrno(readdir(folder, { recursive: true, withFileTypes: true }), ABSENT, []);
  const files = entries.filter((entry) => entry.isFile() && types[extname(entry.name)] !== undefined).slice(0, FILES_MAX);
  const read = files.map(async (entry): Promise<[string, ConsoleFile]> => {
    const path = join(entry.parentPath, entry.name);
    const name = `/${path.slice(folder.length).replace(/^\/+/, "")}`;
    return [name, await fileAt(path, name)];
  });
  return new Map(await Promise.all(read));
}

async function fileAt(path: string, name: string): Promise<ConsoleFile> {
  const bytes = new Uint8Array(await readFile(path));
  const packed = new Uint8Array(await promisify(gzip)(bytes, { level: 9 }));
  return {
    bytes,
    packed: packed.length < bytes.length ? packed : null,
    type: types[extname(path)] ?? "application/octet-stream",
    etag: `"${createHash("sha256").update(bytes).digest("base64url").slice(0, 22)}"`,
    isHashed: name.startsWith("/assets/"),
  };
}
