import type { Bytes, FileInfo, FileKind, Watch } from "../sandbox.ts";
import { answers, type Decoded, entries } from "./fields.ts";
import { protocolError } from "./frame.ts";
import type { Link } from "./link.ts";
import { ask, askForEntries, tell } from "./request.ts";
import { download, upload } from "./transfer.ts";
import { startWatch } from "./watch.ts";

const kinds: readonly (FileKind | undefined)[] = [undefined, "file", "directory", "link", "fifo", "socket", "device"];
const howToWrite = { replace: 0, append: 1, create: 2 } as const;

/** The user that makes a request, and the signal that cancels it. `user` is absent for the sandbox's default user. */
interface Asker {
  user?: string | undefined;
  signal?: AbortSignal | undefined;
}

/** The file requests of the protocol. Paths are absolute and already checked. */
export interface GuestFiles {
  stat(path: string, options: { follow: boolean } & Asker): Promise<FileInfo>;
  list(path: string, options: { depth: number; entriesMax: number } & Asker): Promise<{ entries: FileInfo[]; truncated: boolean }>;
  mkdir(path: string, options: { parents: boolean; mode?: number | undefined } & Asker): Promise<void>;
  move(from: string, to: string, options: { replace: boolean } & Asker): Promise<void>;
  remove(path: string, options: { recursive: boolean } & Asker): Promise<void>;
  readFile(path: string, options: { offset?: number | undefined; length?: number | undefined } & Asker): Promise<AsyncIterable<Uint8Array>>;
  writeFile(
    path: string,
    data: Bytes,
    options: { how: keyof typeof howToWrite; parents: boolean; mode?: number | undefined } & Asker,
  ): Promise<{ bytes: number }>;
  watch(path: string, options: { recursive: boolean; toPath?: (path: string) => string } & Asker): Promise<Watch>;
  tarIn(
    folder: string,
    archive: Bytes,
    options: {
      bytesMax?: number | undefined;
      entriesMax?: number | undefined;
      stripComponents?: number | undefined;
      keepOwner?: boolean | undefined;
    } & Asker,
  ): Promise<{ entries: number; bytes: number }>;
  tarOut(path: string, options: { exclude: readonly string[]; bytesMax?: number | undefined } & Asker): Promise<AsyncIterable<Uint8Array>>;
}

export function guestFiles(link: Link): GuestFiles {
  return {
    stat: (path, { follow, user, signal }) =>
      ask(link, { type: "STAT", values: { path, follow, user }, answer: answers.file, what: path, signal, read: fileInfo }),
    async list(path, { depth, entriesMax, user, signal }) {
      const { items, answer } = await askForEntries(link, {
        type: "LISTDIR",
        values: { path, depth, entriesMax, user },
        entry: entries.file,
        answer: answers.listed,
        entriesMax,
        what: `listing ${path}`,
        signal,
        read: fileInfo,
      });
      return { entries: items, truncated: answer.truncated };
    },
    mkdir: (path, { parents, mode, user, signal }) =>
      tell(link, { type: "MKDIR", values: { path, parents, mode, user }, what: `making ${path}`, signal }),
    move: (from, to, { replace, user, signal }) =>
      tell(link, { type: "MOVE", values: { from, to, replace, user }, what: `moving ${from} to ${to}`, signal }),
    remove: (path, { recursive, user, signal }) =>
      tell(link, { type: "REMOVE", values: { path, recursive, user }, what: `removing ${path}`, signal }),
    async readFile(path, { offset, length, user, signal }) {
      // On the wire, 0 means the whole file, so we read nothing by requesting one byte and cancelling.
      const values = { path, offset, length: length === 0 ? 1 : length, user };
      const bytes = await download(link, { type: "READ", values, answer: answers.file, what: `reading ${path}`, signal, check: fileInfo });
      if (length === 0) bytes.cancel();
      return bytes;
    },
    async writeFile(path, data, { how, parents, mode, user, signal }) {
      const values = { path, mode, parents, how: howToWrite[how], user };
      return upload(link, { type: "WRITE", values, answer: answers.written, what: `writing ${path}`, signal, data });
    },
    watch: (path, { recursive, user, signal, toPath }) =>
      startWatch(link, {
        values: { path, recursive, user },
        what: `watching ${path}`,
        signal,
        ...(toPath === undefined ? {} : { toPath }),
      }),
    async tarIn(folder, archive, { bytesMax, entriesMax, stripComponents, keepOwner, user, signal }) {
      const values = { folder, bytesMax, entriesMax, stripComponents, user, keepOwner };
      return upload(link, { type: "TAR_IN", values, answer: answers.unpacked, what: `unpacking into ${folder}`, signal, data: archive });
    },
    async tarOut(path, { exclude, bytesMax, user, signal }) {
      const values = { path, exclude, bytesMax, user };
      return download(link, { type: "TAR_OUT", values, answer: answers.nothing, what: `packing ${path}`, signal });
    },
  };
}

function fileInfo(fields: Decoded<typeof answers.file>): FileInfo {
  const kind = kinds[fields.kind];
  if (kind === undefined) throw protocolError(`a file of kind ${fields.kind}`);
  const { name, sizeBytes, mode, uid, gid, modifiedMs, linkTarget } = fields;
  return { name, kind, sizeBytes, mode, uid, gid, modifiedMs, linkTarget: kind === "link" ? linkTarget : null };
}
