import { CaissonError } from "../../../contract/error/error.ts";
import { encodeTarHeader, padding, type TarKind, tarEnd } from "../../../sandbox/tar/tar-header.ts";
import { type RawTarEntry, type RawTarKind, readRawTar } from "../../../sandbox/tar/tar-reader.ts";

const kinds: Readonly<Partial<Record<RawTarKind, TarKind>>> = { file: "file", folder: "directory", link: "link", hardLink: "hardLink" };

export interface NewOwner {
  uid: number;
  gid: number;
}

export interface RewriteOptions {
  /** Returns an entry's new name, or null to leave it out. */
  rename?: (name: string) => string | null;
  /** Absent: entries keep the owners in the archive. */
  owner?: NewOwner | undefined;
  /** The mode of files. Absent: their own. */
  mode?: number | undefined;
  bytesMax: number;
  entriesMax: number;
}

/**
 * Rewrites an untrusted archive, entry by entry, for the guest, which checks every name. Throws `unsafe` for devices
 * and FIFOs, `too_large` beyond a bound, and what `readRawTar` throws.
 */
export async function* rewriteTar(source: AsyncIterable<Uint8Array>, options: RewriteOptions): AsyncGenerator<Uint8Array> {
  yield* rewriteEntries(source, options);
  yield tarEnd;
}

/** The same without the archive's end, to join several. */
export async function* rewriteEntries(source: AsyncIterable<Uint8Array>, options: RewriteOptions): AsyncGenerator<Uint8Array> {
  const { rename = (name) => name } = options;
  let bytes = 0;
  let entries = 0;
  for await (const entry of readRawTar(source)) {
    bytes += entry.size;
    entries += 1;
    if (bytes > options.bytesMax || entries > options.entriesMax)
      throw new CaissonError("too_large", `the archive has more than ${options.entriesMax} entries or ${options.bytesMax} bytes`);
    const name = rename(utf8(entry.name));
    if (name !== null) yield* rewriteEntry(entry, { ...options, name, rename });
  }
}

async function* rewriteEntry(
  entry: RawTarEntry,
  { name, rename, owner, mode }: Pick<RewriteOptions, "owner" | "mode"> & { name: string; rename: (name: string) => string | null },
): AsyncGenerator<Uint8Array> {
  const kind = kinds[entry.kind];
  if (kind === undefined)
    throw new CaissonError("unsafe", `the archive contains ${JSON.stringify(name.slice(0, 200))}, which is a ${entry.kind}`);
  const target = utf8(entry.linkName);
  yield encodeTarHeader({
    ...{ kind, name, modifiedMs: entry.modifiedMs },
    mode: mode !== undefined && kind === "file" ? mode : entry.mode & 0o7777,
    sizeBytes: kind === "file" ? entry.size : 0,
    linkTarget: kind === "hardLink" ? (rename(target) ?? target) : target,
    owner: owner ?? { uid: entry.uid, gid: entry.gid },
  });
  if (kind !== "file") return;
  yield* entry.content;
  const rest = padding(entry.size);
  if (rest.length > 0) yield rest;
}

const utf8 = (latin1: string) => Buffer.from(latin1, "latin1").toString("utf8");
