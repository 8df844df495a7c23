import { PassThrough } from "node:stream";
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

/** Writes in place, piece by piece, as everyone does who has not thought of readers. */
async function writeInPlace(good: OwnedSandbox, path: string, data: Bytes): Promise<{ bytes: number }> {
  let bytes = 0;
  await good.writeFile(path, Buffer.alloc(0));
  for await (const piece of piecesOf(data)) bytes += (await good.writeFile(path, piece, { how: "append" })).bytes;
  return { bytes };
}

const readIgnoring = (good: OwnedSandbox): Partial<OwnedSandbox> => ({ readFile: (path) => good.readFile(path) });

/** Defects of files: one for each test that begins with file, folder, watch, tar or port. */
export const fileDefects: Record<string, Defect> = {
  "file: nothing, one byte and five megabytes come back as written": {
    what: "reading stops after a mebibyte",
    sandbox: (good) => ({ readFile: async (path, options) => firstBytes(await good.readFile(path, options), MIB) }),
  },
  "file: a stream of pieces is written whole": {
    what: "only the first piece is written",
    sandbox: (good) => ({
      async writeFile(path, data, options) {
        for await (const piece of piecesOf(data)) return good.writeFile(path, piece, options);
        return good.writeFile(path, Buffer.alloc(0), options);
      },
    }),
  },
  "file: offset and length read a part": { what: "offset and length are ignored", sandbox: readIgnoring },
  "file: replacing is atomic, a reader sees the old or the new": {
    what: "files are written in place",
    sandbox: (good) => ({ writeFile: (path, data) => writeInPlace(good, path, data) }),
  },
  "file: a write that fails in the middle leaves the old content and nothing else": {
    what: "files are written in place",
    sandbox: (good) => ({ writeFile: (path, data) => writeInPlace(good, path, data) }),
  },
  "file: append adds, create refuses what exists, replace is the default": {
    what: "every write replaces",
    sandbox: (good) => ({ writeFile: (path, data, options) => good.writeFile(path, data, { ...options, how: "replace" }) }),
  },
  "file: modes are set as asked and kept on replacing": {
    what: "every file is 0644",
    sandbox: (good) => ({ writeFile: (path, data, options) => good.writeFile(path, data, { ...options, mode: 0o644 }) }),
  },
  "file: parents are made when asked for, else a missing parent is not_found": {
    what: "parents are always made",
    sandbox: (good) => ({ writeFile: (path, data, options) => good.writeFile(path, data, { ...options, parents: true }) }),
  },
  "file: a command sees what was written, as its own user's": {
    what: "files belong to somebody else",
    sandbox: (good) => ({ stat: async (path, options) => ({ ...(await good.stat(path, options)), uid: 4_711 }) }),
  },
  "file: a missing one is not_found, before the first byte": {
    what: "a missing file is an empty one",
    sandbox: (good) => ({ readFile: (path, options) => forgiving("not_found", () => good.readFile(path, options), nothing) }),
  },
  "file: a folder cannot be read, a file cannot be listed": {
    what: "a folder reads as nothing",
    sandbox: (good) => ({ readFile: (path, options) => forgiving("invalid", () => good.readFile(path, options), nothing) }),
  },
  "file: a fifo is unsupported and nothing hangs": {
    what: "a fifo is waited for",
    sandbox: (good) => ({
      readFile: (path, options) =>
        forgiving(
          "unsupported",
          () => good.readFile(path, options),
          () => new Promise(() => {}),
        ),
    }),
  },
  "file: what the user may not read is denied": {
    what: "what may not be read is empty",
    capabilities: (good) => ({ ...good, isolation: 1 }),
    sandbox: (good) => ({ readFile: (path, options) => forgiving("denied", () => good.readFile(path, options), nothing) }),
  },
  "file: many reads and writes at once do not mix": {
    what: "files of similar names are mixed up",
    sandbox: (good) => ({ writeFile: (path, data, options) => good.writeFile(path.replace(/[1-3]$/, "0"), data, options) }),
  },
  "file: a reader that stops half-way disturbs nobody": {
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
  "folder: list gives names, kinds, sizes and modes of the children": {
    what: "links have no target",
    sandbox: (good) => ({
      async list(path, options) {
        const { entries, truncated } = await good.list(path, options);
        return { entries: entries.map((each) => ({ ...each, linkTarget: null })), truncated };
      },
    }),
  },
  "folder: list goes as deep as asked and no deeper, never through a link": {
    what: "depth is ignored",
    sandbox: (good) => ({ list: (path, options) => good.list(path, { ...options, depth: 1 }) }),
  },
  "folder: list stops at entriesMax and says so": {
    what: "a cut list does not say so",
    sandbox: (good) => ({ list: async (path, options) => ({ ...(await good.list(path, options)), truncated: false }) }),
  },
  "folder: an empty one lists as empty": {
    what: "a folder lists itself",
    sandbox: (good) => ({ list: async (path) => ({ entries: [await good.stat(path)], truncated: false }) }),
  },
  "folder: stat follows a link or not, as asked": {
    what: "links are always followed",
    sandbox: (good) => ({ stat: (path, options) => good.stat(path, { ...options, follow: true }) }),
  },
  "folder: mkdir with mode and parents; an existing one is exists, unless parents": {
    what: "every folder is 0755",
    sandbox: (good) => ({ mkdir: (path, options) => good.mkdir(path, { ...options, mode: 0o755 }) }),
  },
  "folder: move renames; an existing target is exists, unless replace": {
    what: "moving always replaces",
    sandbox: (good) => ({ move: (from, to, options) => good.move(from, to, { ...options, replace: true }) }),
  },
  "folder: remove takes a folder with content only when recursive": {
    what: "removing is always recursive",
    sandbox: (good) => ({ remove: (path, options) => good.remove(path, { ...options, recursive: true }) }),
  },
  "folder: remove never follows a link": {
    what: "what a link leads to is emptied first",
    sandbox: (good) => ({
      async remove(path, options) {
        if ((await good.stat(path, { follow: true })).kind === "directory") {
          for (const { name } of (await good.list(path)).entries) await good.remove(`${path}/${name}`, options);
        }
        await good.remove(path, options);
      },
    }),
  },
  "folder: awkward names go through every operation": {
    what: "line breaks in names become spaces",
    sandbox: (good) => ({ writeFile: (path, data, options) => good.writeFile(path.replaceAll("\n", " "), data, options) }),
  },
  "folder: a relative path is one below /workspace": {
    what: "a relative path is one below /",
    sandbox: (good) => ({ writeFile: (path, data, options) => good.writeFile(path.startsWith("/") ? path : `/${path}`, data, options) }),
  },
  "watch: created, modified, removed and moved are told": {
    what: "moves are not told",
    sandbox: (good) => ({
      async watch(path, options) {
        const watch = await good.watch(path, options);
        const told = async function* (): AsyncGenerator<WatchEvent> {
          for await (const event of watch) if (event.kind !== "movedHere") yield event;
        };
        return { close: () => watch.close(), [Symbol.asyncIterator]: told };
      },
    }),
  },
  "watch: a folder that is made while watching is watched too": {
    what: "new folders are not watched",
    sandbox: (good) => ({ watch: (path, options) => good.watch(path, { ...options, recursive: false }) }),
  },
  "watch: without recursive only the children count": {
    what: "everything is watched",
    sandbox: (good) => ({ watch: (path, options) => good.watch(path, { ...options, recursive: true }) }),
  },
  "watch: nothing that happened before is told, and close ends the iteration": {
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
        good.tarIn(folder, firstBytes(piecesOf(archive), 1536), options).catch(() => ({ entries: 7, bytes: 0 })),
    }),
  },
  "tar: out and in again gives the same tree": {
    what: "dangling links are left out",
    sandbox: (good) => ({ tarOut: (path, options) => good.tarOut(path, { ...options, exclude: ["dangling"] }) }),
  },
  "tar: exclude leaves out, bytesMax stops with too_large": {
    what: "nothing is left out",
    sandbox: (good) => ({ tarOut: (path) => good.tarOut(path) }),
  },
  "tar: every trick is unsafe and nothing lands outside": {
    what: "tricks are passed over in silence",
    sandbox: passingOverTricks,
  },
  "tar: an existing link in the folder is not followed": {
    what: "links are passed over in silence",
    sandbox: passingOverTricks,
  },
  "tar: bounds on bytes and entries are too_large": {
    what: "there are no bounds",
    sandbox: (good) => ({ tarIn: (folder, archive) => good.tarIn(folder, archive) }),
  },
  "tar: stripComponents drops leading folders": {
    what: "nothing is dropped",
    sandbox: (good) => ({ tarIn: (folder, archive) => good.tarIn(folder, archive) }),
  },
  "tar: what is not an archive, or ends too early, is refused in time": {
    what: "an archive that ends too early is fine",
    sandbox: (good) => ({
      tarIn: (folder, archive, options) => good.tarIn(folder, archive, options).catch(() => ({ entries: 0, bytes: 0 })),
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
  "port: where nothing listens is unavailable": {
    what: "a dead port is connected to",
    sandbox: (good) => ({
      connect: (port) =>
        forgiving(
          "unavailable",
          () => good.connect(port),
          () => new PassThrough(),
        ),
    }),
  },
  "port: a number that is none is invalid": {
    what: "a bad port is some error",
    sandbox: (good) => ({ connect: (port) => forgiving("invalid", () => good.connect(port), notWhatItIs) }),
  },
  "port: listeners are listed while they listen": { what: "nobody listens", sandbox: () => ({ listeners: async () => [] }) },
};
