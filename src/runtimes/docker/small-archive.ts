import { readTar } from "../../sandbox/tar/read-tar.ts";
import { encodeTarHeader, padding, tarEnd } from "../../sandbox/tar/tar-header.ts";

/** A small archive entry with its content. Names are relative to the root inside. */
export interface SmallEntry {
  name: string;
  kind: "file" | "directory" | "link";
  mode: number;
  uid: number;
  gid: number;
  content?: string | Buffer;
  linkTarget?: string;
}

/** Packs small entries into an archive. */
export function archiveOf(entries: readonly SmallEntry[]): Buffer {
  const modifiedMs = Math.floor(Date.now() / 1000) * 1000;
  const parts = entries.flatMap(({ content = "", uid, gid, linkTarget = "", ...entry }) => {
    const bytes = Buffer.from(content);
    return [
      encodeTarHeader({ ...entry, linkTarget, modifiedMs, sizeBytes: bytes.length, owner: { uid, gid } }),
      bytes,
      padding(bytes.length),
    ];
  });
  return Buffer.concat([...parts, tarEnd]);
}

/**
 * Returns the text of an archive's first entry if it is a regular file of at most `bytesMax`, otherwise null. The
 * archive is untrusted.
 */
export async function firstFile(archive: AsyncIterable<Uint8Array>, options: { bytesMax: number }): Promise<string | null> {
  for await (const entry of readTar(archive)) {
    if (entry.kind !== "file" || entry.sizeBytes > options.bytesMax) return null;
    const parts: Uint8Array[] = [];
    for await (const part of entry.content) parts.push(part);
    return Buffer.concat(parts).toString("utf8");
  }
  return null;
}
