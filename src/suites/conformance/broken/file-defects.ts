import { PassThrough } from "node:stream";
import { ignore } from "../../../lib/failures.ts";
import type { Bytes, OwnedSandbox, WatchEvent } from "../../../sandbox/sandbox.ts";
import { type Defect, forgiving, MIB, nothing, notWhatItIs } from "./broken-runtime.ts";

async function* firstBytes(source: AsyncIterable<Uint8Array>, count: number): AsyncGenerator<Uint8Array> {
  let left = count;
  for await (const part of source) {
    yield part.subarray(0, left);
    left -= Math.min(left, part.length);
    if (left === 0) return;
  }
}

function passingOverTricks(good: OwnedSandbox): Partial<OwnedSandbox> {
  const unpackedNothing = () => ({ entries: 0, bytes: 0 });
  return { tarIn: (folder, archive, options) => forgiving("unsafe", () => good.tarIn(folder, archive, options), unpackedNothing) };
}

async function* piecesOf(data: Bytes): AsyncGenerator<Uint8Array> {
  if (data instanceof Uint8Array) yield data;
  else yield* data;
}

/** Writes in place, piece by piece, like naive code that ignores concurrent readers. */
async function writeInPlace(good: OwnedSandbox, path: string, data: Bytes): Promise<{ bytes: number }> {
  let bytes = 0;
  await good.writeFile(path, Buffer.alloc(0));
  for await (const piece of piecesOf(data)) bytes += (await good.writeFile(path, piece, { how: "append" })).bytes;
  return { bytes };
}

const readIgnoring = (good: OwnedSandbox): Partial<OwnedSandbox> => ({ readFile: (path) => good.readFile(path) });

/** Defects of files: one for each test whose name starts with file, folder, watch, tar or port. */
export const fileDefects: Record<string, Defect> = {
  "file: zero, one and five million bytes are read as written": {
    what: "reading stops after a mebibyte",
    sandbox: (good) => ({ readFile: async (path, options) => firstBytes(await good.readFile(path, options), MIB) }),
  },
  "file: a stream is written completely": {
    what: "only the first piece is written",
    sandbox: (good) => ({
      async writeFile(path, data, options) {
        for await (const piece of piecesOf(data)) return good.writeFile(path, piece, options);
        return good.writeFile(path, Buffer.alloc(0), options);
      },
    }),
  },
  "file: offset and length select a part": { what: "offset and length are ignored", sandbox: readIgnoring },
  "file: replacing is atomic: a reader sees the old or the new content": {
    what: "files are written in place",
    sandbox: (good) => ({ writeFile: (path, data) => writeInPlace(good, path, data) }),
  },
  "file: a write that fails midway leaves only the old content": {
    what: "files are written in place",
    sandbox: (good) => ({ writeFile: (path, data) => writeInPlace(good, path, data) }),
  },
  "file: append adds, create rejects an existing file, replace is the default": {
    what: "every write replaces the file",
    sandbox: (good) => ({ writeFile: (path, data, options) => good.writeFile(path, data, { ...options, how: "replace" }) }),
  },
  "file: modes are set as requested and survive replacing": {
    what: "every file is 0644",
    sandbox: (good) => ({ writeFile: (path, data, options) => good.writeFile(path, data, { ...options, mode: 0o644 }) }),
  },
  "file: parents are created on request; otherwise a missing parent is not_found": {
    what: "parents are always created",
    sandbox: (good) => ({ writeFile: (path, data, options) => good.writeFile(path, data, { ...options, parents: true }) }),
  },
  "file: a command sees a written file, owned by its user": {
    what: "files belong to another user",
    sandbox: (good) => ({ stat: async (path, options) => ({ ...(await good.stat(path, options)), uid: 4_711 }) }),
  },
  "file: a missing file is not_found before the first byte": {
    what: "a missing file reads as empty",
    sandbox: (good) => ({ readFile: (path, options) => forgiving("not_found", () => good.readFile(path, options), nothing) }),
  },
  "file: a folder cannot be read, a file cannot be listed": {
    what: "a folder reads as nothing",
    sandbox: (good) => ({ readFile: (path, options) => forgiving("invalid", () => good.readFile(path, options), nothing) }),
  },
  "file: a fifo is unsupported and nothing hangs": {
    what: "reading a fifo hangs",
    sandbox: (good) => ({
      readFile: (path, options) =>
        forgiving(
          "unsupported",
          () => good.readFile(path, options),
          () => new Promise(() => {}),
        ),
    }),
  },
  "file: a file that the user may not read is denied": {
    what: "an unreadable file reads as empty",
    capabilities: (good) => ({ ...good, isolation: 1 }),
    sandbox: (good) => ({ readFile: (path, options) => forgiving("denied", () => good.readFile(path, options), nothing) }),
  },
  "file: concurrent reads and writes do not mix": {
    what: "files with similar names are mixed up",
    sandbox: (good) => ({ writeFile: (path, data, options) => good.writeFile(path.replace(/[1-3]$/, "0"), data, options) }),
  },
  "file: an abandoned read does not block other calls": {
    what: "an unfinished read blocks the next write",
    sandbox(good) {
      let unfinished = false;
      return {
        async readFile(path, options) {
          const source = await good.readFile(path, options);
          return (async function* () {
            unfinished = true;
            yield* source;
            unfinished = false;
          })();
        },
        writeFile: (path, data, options) => (unfinished ? new Promise(() => {}) : good.writeFile(path, data, options)),
      };
    },
  },
  "folder: list returns the children's names, kinds, sizes and modes": {
    what: "links have no target",
    sandbox: (good) => ({
      async list(path, options) {
        const { entries, truncated } = await good.list(path, options);
        return { entries: entries.map((each) => ({ ...each, linkTarget: null })), truncated };
      },
    }),
  },
  "folder: list descends to the requested depth, never through a link": {
    what: "depth is ignored",
    sandbox: (good) => ({ list: (path, options) => good.list(path, { ...options, depth: 1 }) }),
  },
  "folder: list stops at entriesMax and reports it": {
    what: "a truncated list is not marked as truncated",
    sandbox: (good) => ({ list: async (path, options) => ({ ...(await good.list(path, options)), truncated: false }) }),
  },
  "folder: an empty folder lists as empty": {
    what: "a folder lists itself",
    sandbox: (good) => ({ list: async (path) => ({ entries: [await good.stat(path)], truncated: false }) }),
  },
  "folder: stat follows a link or not, as requested": {
    what: "links are always followed",
    sandbox: (good) => ({ stat: (path, options) => good.stat(path, { ...options, follow: true }) }),
  },
  "folder: mkdir sets the mode; an existing folder is exists, unless parents": {
    what: "every folder is 0755",
    sandbox: (good) => ({ mkdir: (path, options) => good.mkdir(path, { ...options, mode: 0o755 }) }),
  },
  "folder: move renames; an existing target is exists, unless replace": {
    what: "moving always replaces the target",
    sandbox: (good) => ({ move: (from, to, options) => good.move(from, to, { ...options, replace: true }) }),
  },
  "folder: remove deletes a folder with content only if recursive": {
    what: "removing is always recursive",
    sandbox: (good) => ({ remove: (path, options) => good.remove(path, { ...options, recursive: true }) }),
  },
  "folder: remove never follows a link": {
    what: "a link's target is emptied first",
    sandbox: (good) => ({
      async remove(path, options) {
        if ((await good.stat(path, { follow: true })).kind === "directory") {
          for (const { name } of (await good.list(path)).entries) await good.remove(`${path}/${name}`, options);
        }
        await good.remove(path, options);
      },
    }),
  },
  "folder: awkward names work in every operation": {
    what: "line breaks in names become spaces",
    sandbox: (good) => ({ writeFile: (path, data, options) => good.writeFile(path.replaceAll("\n", " "), data, options) }),
  },
  "folder: a relative path is relative to /workspace": {
    what: "relative paths are relative to /",
    sandbox: (good) => ({ writeFile: (path, data, options) => good.writeFile(path.startsWith("/") ? path : `/${path}`, data, options) }),
  },
  "watch: created, modified, removed and moved are reported": {
    what: "moves are not reported",
    sandbox: (good) => ({
      async watch(path, options) {
        const watch = await good.watch(path, options);
        const iterate = async function* (): AsyncGenerator<WatchEvent> {
          for await (const event of watch) if (event.kind !== "movedHere") yield event;
        };
        return { close: () => watch.close(), [Symbol.asyncIterator]: iterate };
      },
    }),
  },
  "watch: a folder created during the watch is watched too": {
    what: "new folders are not watched",
    sandbox: (good) => ({ watch: (path, options) => good.watch(path, { ...options, recursive: false }) }),
  },
  "watch: without recursive, only the children are reported": {
    what: "everything is watched",
    sandbox: (good) => ({ watch: (path, options) => good.watch(path, { ...options, recursive: true }) }),
  },
  "watch: earlier changes are not reported, and close ends the iteration": {
    what: "closing does nothing",
    sandbox: (good) => ({
      async watch(path, options) {
        const watch = await good.watch(path, options);
        return { close() {}, [Symbol.asyncIterator]: () => watch[Symbol.asyncIterator]() };
      },
    }),
  },
  "tar: an archive is unpacked with its folders, modes and links": {
    what: "an archive is cut in half",
    sandbox: (good) => ({
      tarIn: (folder, archive, options) =>
        ignore(good.tarIn(folder, firstBytes(piecesOf(archive), 1536), options), "this is the defect").then(
          (done) => done ?? { entries: 7, bytes: 0 },
        ),
    }),
  },
  "tar: packing and unpacking preserves the tree": {
    what: "dangling links are omitted",
    sandbox: (good) => ({ tarOut: (path, options) => good.tarOut(path, { ...options, exclude: ["dangling"] }) }),
  },
  "tar: exclude omits entries, bytesMax stops with too_large": {
    what: "nothing is omitted",
    sandbox: (good) => ({ tarOut: (path) => good.tarOut(path) }),
  },
  "tar: every trick is unsafe and writes nothing outside": {
    what: "tricks are silently skipped",
    sandbox: passingOverTricks,
  },
  "tar: an existing link in the folder is not followed": {
    what: "links are silently skipped",
    sandbox: passingOverTricks,
  },
  "tar: exceeding bytesMax or entriesMax is too_large": {
    what: "there are no limits",
    sandbox: (good) => ({ tarIn: (folder, archive) => good.tarIn(folder, archive) }),
  },
  "tar: stripComponents drops leading folders": {
    what: "nothing is dropped",
    sandbox: (good) => ({ tarIn: (folder, archive) => good.tarIn(folder, archive) }),
  },
  "tar: malformed and truncated archives are rejected in time": {
    what: "a truncated archive is accepted",
    sandbox: (good) => ({
      tarIn: (folder, archive, options) =>
        ignore(good.tarIn(folder, archive, options), "this is the defect").then((done) => done ?? { entries: 0, bytes: 0 }),
    }),
  },
  "port: a connection carries bytes both ways, with half-close": {
    what: "closing one half closes both",
    sandbox: (good) => ({
      async connect(port) {
        const connection = await good.connect(port);
        const end = connection.end.bind(connection) as (data: unknown) => unknown;
        return Object.assign(connection, {
          end(data: unknown) {
            end(data);
            connection.push(null);
            return connection;
          },
        });
      },
    }),
  },
  "port: a port without a listener is unavailable": {
    what: "connecting to a dead port succeeds",
    sandbox: (good) => ({
      connect: (port) =>
        forgiving(
          "unavailable",
          () => good.connect(port),
          () => new PassThrough(),
        ),
    }),
  },
  "port: a number that is not a port is invalid": {
    what: "a bad port gives the wrong error",
    sandbox: (good) => ({ connect: (port) => forgiving("invalid", () => good.connect(port), notWhatItIs) }),
  },
  "port: listeners are listed while they listen": { what: "no listener is listed", sandbox: () => ({ listeners: async () => [] }) },
};
