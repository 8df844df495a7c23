import { CaissonError } from "../../contract/error/error.ts";
import type { Bytes } from "../sandbox.ts";
import type { TarHeader, TarKind } from "./tar-header.ts";
import { type RawTarEntry, type RawTarKind, type RawTarOptions, readRawTar } from "./tar-reader.ts";

/** One entry. If its content is not read, it is skipped when the next entry is requested. */
export interface TarEntry extends TarHeader {
  content: AsyncIterable<Uint8Array>;
}

const kinds: Readonly<Partial<Record<RawTarKind, TarKind>>> = { file: "file", folder: "directory", link: "link", hardLink: "hardLink" };

/**
 * Yields the files, folders and links of a streamed archive, with names as text. Throws what `readRawTar` throws, and
 * `unsafe` for devices and FIFOs. Does not check names and targets further.
 */
export async function* readTar(archive: Bytes, options: RawTarOptions = {}): AsyncGenerator<TarEntry, void, void> {
  for await (const entry of readRawTar(archive instanceof Uint8Array ? once(archive) : archive, options)) yield textual(entry);
}

function textual({ name, kind, linkName, mode, size, modifiedMs, content }: RawTarEntry): TarEntry {
  const known = kinds[kind];
  const text = utf8(name);
  if (known === undefined)
    throw new CaissonError("unsafe", `the archive contains ${JSON.stringify(text)}, which is not a file, folder or link`);
  return { name: text, kind: known, linkTarget: utf8(linkName), mode, sizeBytes: size, modifiedMs, content };
}

function utf8(latin1: string): string {
  return Buffer.from(latin1, "latin1").toString("utf8");
}

async function* once(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  yield bytes;
}
