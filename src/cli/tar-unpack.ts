import { createReadStream, createWriteStream } from "node:fs";
import { chmod, lstat, mkdir, symlink, utimes } from "node:fs/promises";
import { dirname, join, normalize } from "node:path";
import { pipeline } from "node:stream/promises";
import { CaissonError } from "../contract/error.ts";
import { BLOCK_BYTES, decodeHeader, decodePax, EXTENSION_BYTES_MAX, type TarHeader } from "./tar-format.ts";

const ENTRIES_MAX = 1_000_000;

export interface Unpacked {
  entries: number;
  /** Links that lead out of the folder: not made. */
  leftOut: string[];
}

/**
 * Unpacks an archive that came out of a sandbox into a folder that exists, is empty and is only ours. Nothing lands outside: names are
 * checked, links are made last, so that no entry can go through one, and those that lead out are left out. Throws `unsafe`, `too_large`.
 */
export async function unpackInto(folder: string, archive: AsyncIterable<Uint8Array>): Promise<Unpacked> {
  const reader = blockReader(archive);
  const links: { path: string; target: string }[] = [];
  const folders: { path: string; mode: number }[] = [];
  const leftOut: string[] = [];
  let entries = 0;
  for await (const header of headers(reader)) {
    if (++entries > ENTRIES_MAX) throw new CaissonError("too_large", `the archive has more than ${ENTRIES_MAX} entries`);
    const name = safeName(header.name);
    const path = join(folder, name);
    if (name === "" && header.kind !== "directory") throw new CaissonError("unsafe", "the archive has an entry without a name");
    await mkdir(dirname(path), { recursive: true });
    if (header.kind === "directory") {
      await mkdir(path, { recursive: true });
      folders.push({ path, mode: header.mode });
    } else if (header.kind === "file") {
      await pipeline(reader.bytes(header.sizeBytes), createWriteStream(path, { flags: "wx", mode: header.mode }));
      await utimes(path, header.modifiedSeconds, header.modifiedSeconds);
    } else if (header.kind === "hardLink") {
      await copyEarlier({ from: join(folder, safeName(header.linkTarget)), to: path, mode: header.mode });
    } else if (staysInside(name, header.linkTarget)) links.push({ path, target: header.linkTarget });
    else leftOut.push(name);
  }
  for (const link of links) await symlink(link.target, link.path);
  // Last, and the deepest first: a folder without write permission could not be filled.
  for (const each of folders.reverse()) await chmod(each.path, each.mode | 0o700);
  return { entries, leftOut };
}

async function copyEarlier(copy: { from: string; to: string; mode: number }): Promise<void> {
  const source = await lstat(copy.from).catch(() => null);
  if (source?.isFile() !== true) throw new CaissonError("unsafe", "the archive has a hard link to something that is not in it");
  await pipeline(createReadStream(copy.from), createWriteStream(copy.to, { flags: "wx", mode: copy.mode }));
}

/** Relative, without `.` and empty parts. Throws `unsafe` for one that leaves the folder. */
function safeName(name: string): string {
  if (name.startsWith("/") || name.includes("\0"))
    throw new CaissonError("unsafe", `the archive has the name ${JSON.stringify(name.slice(0, 200))}`);
  const parts = name.split("/").filter((part) => part !== "" && part !== ".");
  if (parts.includes("..")) throw new CaissonError("unsafe", `the archive has the name ${JSON.stringify(name.slice(0, 200))}`);
  return parts.join("/");
}

function staysInside(name: string, target: string): boolean {
  if (target.startsWith("/") || target.includes("\0")) return false;
  const resolved = normalize(join(dirname(name), target));
  return resolved !== ".." && !resolved.startsWith("../");
}

interface BlockReader {
  block(): Promise<Uint8Array | null>;
  bytes(count: number): AsyncGenerator<Uint8Array>;
  all(count: number): Promise<Uint8Array>;
}

/** Real entries, with the names and sizes that extension headers before them gave. */
async function* headers(reader: BlockReader): AsyncGenerator<TarHeader> {
  let pax = new Map<string, string>();
  for (;;) {
    const block = await reader.block();
    const header = block === null ? null : decodeHeader(block);
    if (header === null) return;
    if (["paxRecords", "paxGlobal", "longName", "longLink"].includes(header.kind)) {
      if (header.sizeBytes > EXTENSION_BYTES_MAX) throw new CaissonError("unsafe", "the archive has a name that is too long");
      const body = await reader.all(header.sizeBytes);
      if (header.kind === "paxRecords") pax = new Map([...pax, ...decodePax(body)]);
      const long = Buffer.from(body).toString("utf8").replace(/\0.*$/s, "");
      if (header.kind === "longName") pax.set("path", long);
      if (header.kind === "longLink") pax.set("linkpath", long);
      continue;
    }
    const size = pax.has("size") ? Number(pax.get("size")) : header.sizeBytes;
    if (!Number.isSafeInteger(size) || size < 0) throw new CaissonError("unsafe", "the archive has an impossible size");
    yield {
      ...header,
      name: pax.get("path") ?? header.name,
      linkTarget: pax.get("linkpath") ?? header.linkTarget,
      sizeBytes: header.kind === "file" ? size : 0,
    };
    pax = new Map();
  }
}

function blockReader(archive: AsyncIterable<Uint8Array>): BlockReader {
  const iterator = archive[Symbol.asyncIterator]();
  let rest: Uint8Array = new Uint8Array(0);
  async function fill(): Promise<boolean> {
    while (rest.length === 0) {
      const next = await iterator.next();
      if (next.done === true) return false;
      rest = next.value;
    }
    return true;
  }
  async function* take(count: number): AsyncGenerator<Uint8Array> {
    let left = count;
    while (left > 0) {
      if (!(await fill())) throw new CaissonError("unsafe", "the archive ends in the middle of an entry");
      const part = rest.subarray(0, Math.min(left, rest.length));
      rest = rest.subarray(part.length);
      left -= part.length;
      yield part;
    }
  }
  async function gather(count: number): Promise<Uint8Array> {
    const parts: Uint8Array[] = [];
    for await (const part of take(count)) parts.push(part);
    return Buffer.concat(parts);
  }
  const paddingOf = (count: number) => (BLOCK_BYTES - (count % BLOCK_BYTES)) % BLOCK_BYTES;
  return {
    block: async () => ((await fill()) ? gather(BLOCK_BYTES) : null),
    async *bytes(count) {
      yield* take(count);
      await gather(paddingOf(count));
    },
    async all(count) {
      const body = await gather(count);
      await gather(paddingOf(count));
      return body;
    },
  };
}
