import { createHash } from "node:crypto";
import { readdir, readFile } from "node:fs/promises";
import { extname, join } from "node:path";
import { promisify } from "node:util";
import { gzip } from "node:zlib";

/** More than any build of ours has; a folder that holds more is not one. */
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
  /** Compressed; null where that is no smaller. */
  packed: Uint8Array<ArrayBuffer> | null;
  type: string;
  etag: string;
  /** Whether its name changes with what is in it. */
  isHashed: boolean;
}

/**
 * The built console, read and compressed once: its files by their paths, such as `/assets/main-4f2a.js`. Empty where
 * there is none.
 */
export async function readConsoleFiles(folder: string): Promise<ReadonlyMap<string, ConsoleFile>> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true }).catch(() => []);
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
