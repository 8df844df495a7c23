import type { Client } from "../../../../../src/client/connect.ts";
import { CaissonError } from "../../../../../src/contract/error/error.ts";
import { saveFile } from "../../../parts/save-file.ts";
import { joinPath, nameOf } from "./paths.ts";

/** A transfer is held in memory. Use `caisson cp` for larger ones. */
const BYTES_MAX = 256 * 1024 * 1024;
const FILES_MAX = 1_000;

export interface DroppedFile {
  /** Relative to where it was dropped. */
  path: string;
  file: File;
}

/** Returns all dropped files, including those in dropped folders. Must be called while the event is handled. */
export async function droppedFiles(items: DataTransferItemList): Promise<DroppedFile[]> {
  const entries = [...items].flatMap((item) => item.webkitGetAsEntry() ?? []);
  const found: DroppedFile[] = [];
  const waiting = entries.map((entry) => ({ entry, path: entry.name }));
  for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) {
    const { entry, path } = next;
    if (entry.isFile) found.push({ path, file: await fileOf(entry as FileSystemFileEntry) });
    else
      for (const inside of await entriesOf(entry as FileSystemDirectoryEntry))
        waiting.push({ entry: inside, path: `${path}/${inside.name}` });
    if (found.length + waiting.length > FILES_MAX) {
      throw new CaissonError("too_large", `more than ${FILES_MAX} files at once`, { hint: "Use `caisson cp` to copy whole folders." });
    }
  }
  return found;
}

const fileOf = (entry: FileSystemFileEntry) => new Promise<File>((resolve, reject) => entry.file(resolve, reject));

async function entriesOf(folder: FileSystemDirectoryEntry): Promise<FileSystemEntry[]> {
  const reader = folder.createReader();
  const all: FileSystemEntry[] = [];
  // A browser returns up to a hundred entries at a time, and an empty list at the end.
  for (;;) {
    const some = await new Promise<FileSystemEntry[]>((resolve, reject) => reader.readEntries(resolve, reject));
    if (some.length === 0 || all.length > FILES_MAX) return all;
    all.push(...some);
  }
}

export async function upload(
  station: Client,
  { sandbox, folder, files }: { sandbox: string; folder: string; files: readonly DroppedFile[] },
): Promise<void> {
  for (const { path, file } of files) {
    if (file.size > BYTES_MAX) throw tooBig(path);
    const bytes = new Uint8Array(await file.arrayBuffer());
    await station.files.write(sandbox, { path: joinPath(folder, path), parents: true, how: "replace" }, bytes);
  }
}

/** Downloads a file, or a folder as an archive. */
export async function download(
  station: Client,
  { sandbox, path, isFolder }: { sandbox: string; path: string; isFolder: boolean },
): Promise<void> {
  const stream = isFolder ? await station.files.pack(sandbox, { path, bytesMax: BYTES_MAX }) : await station.files.read(sandbox, { path });
  const bytes = await collectPieces(stream, path);
  saveFile(isFolder ? `${nameOf(path)}.tar` : nameOf(path), bytes, "application/octet-stream");
}

async function collectPieces(stream: ReadableStream<Uint8Array>, path: string): Promise<Uint8Array<ArrayBuffer>[]> {
  const pieces: Uint8Array<ArrayBuffer>[] = [];
  let length = 0;
  for await (const piece of stream) {
    length += piece.length;
    if (length > BYTES_MAX) throw tooBig(path);
    pieces.push(piece as Uint8Array<ArrayBuffer>);
  }
  return pieces;
}

const tooBig = (path: string) =>
  new CaissonError("too_large", `${nameOf(path)} is too large for the console`, { hint: "Use `caisson cp` to copy files of any size." });
