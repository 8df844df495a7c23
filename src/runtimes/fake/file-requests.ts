import { answers, decodeFields, type Encodable, entries, type Shape, shapes } from "../../sandbox/guest/fields.ts";
import { type FrameName, protocolError } from "../../sandbox/guest/frame.ts";
import type { FileKind, WatchKind } from "../../sandbox/sandbox.ts";
import type { FakeMachine } from "./machine.ts";
import type { MemoryFileInfo } from "./memory-files.ts";
import { packFromMemory, unpackIntoMemory } from "./memory-tar.ts";

/** An open stream of a session; handles the frames that follow its request. */
export interface GuestStream {
  onFrame(type: FrameName, payload: Buffer): void;
  onCancel?(): void;
}

export interface Wire {
  machine: FakeMachine;
  uidOf(user: string): number;
  open(stream: number, handler: GuestStream): void;
  close(stream: number): void;
  send(type: FrameName, stream: number, payload?: Uint8Array): void;
  ok<S extends Shape>(stream: number, shape: S, values: Encodable<S>): void;
  entry<S extends Shape>(stream: number, shape: S, values: Encodable<S>): void;
  event(stream: number, values: Encodable<typeof shapes.WATCH_EVENT>): void;
  /** Returns an even stream id for a stream that the guest opens. */
  nextAccepted(): number;
  sendAccepted(stream: number, values: Encodable<typeof shapes.ACCEPTED>): void;
  fail(stream: number, error: unknown): void;
}

export interface FileRequests {
  /** Throws the error that the guest would answer with. */
  handle(type: FrameName, stream: number, payload: Buffer): void;
}

const kindNumbers: Readonly<Record<FileKind, number>> = { file: 1, directory: 2, link: 3, fifo: 4, socket: 5, device: 6 };
const watchNumbers: Readonly<Record<WatchKind, number>> = { created: 1, modified: 2, removed: 3, movedHere: 4, attributes: 5, overflow: 6 };
const hows = ["replace", "append", "create"] as const;
const STREAM_WINDOW = 1_048_576;
const DATA_BYTES = 65_536;

/** Handles requests for the files, archives and watches of a machine in memory. */
export function fileRequests(wire: Wire): FileRequests {
  const { machine } = wire;
  const { files } = machine;
  const wireFile = (info: MemoryFileInfo) => ({ ...info, kind: kindNumbers[info.kind] });
  const confirm = (stream: number) => wire.ok(stream, answers.nothing, {});
  const handlers: Partial<Record<FrameName, (stream: number, payload: Buffer) => void>> = {
    STAT(stream, payload) {
      const { path, follow, user } = decodeFields("STAT", shapes.STAT, payload);
      wire.uidOf(user);
      wire.ok(stream, answers.file, wireFile(files.stat(path, { follow })));
    },
    LISTDIR(stream, payload) {
      const { path, depth, entriesMax } = decodeFields("LISTDIR", shapes.LISTDIR, payload);
      const listed = files.list(path, { depth, entriesMax });
      for (const info of listed.entries) wire.entry(stream, entries.file, wireFile(info));
      wire.ok(stream, answers.listed, { truncated: listed.truncated });
    },
    MKDIR(stream, payload) {
      const { path, parents, mode, user } = decodeFields("MKDIR", shapes.MKDIR, payload);
      files.mkdir(path, { parents, mode: mode === 0 ? 0o755 : mode, uid: wire.uidOf(user) });
      confirm(stream);
    },
    MOVE(stream, payload) {
      const { from, to, replace } = decodeFields("MOVE", shapes.MOVE, payload);
      files.move(from, to, { replace });
      confirm(stream);
    },
    REMOVE(stream, payload) {
      const { path, recursive } = decodeFields("REMOVE", shapes.REMOVE, payload);
      files.remove(path, { recursive });
      confirm(stream);
    },
    READ(stream, payload) {
      const { path, offset, length, user } = decodeFields("READ", shapes.READ, payload);
      const content = files.read(path, wire.uidOf(user));
      const part = content.subarray(offset, length === 0 ? content.length : offset + length);
      wire.ok(stream, answers.file, wireFile(files.stat(path, { follow: true })));
      sendAll(wire, stream, [part]);
    },
    WRITE(stream, payload) {
      const { path, mode, parents, how, user } = decodeFields("WRITE", shapes.WRITE, payload);
      const uid = wire.uidOf(user);
      if (!parents && !files.exists(path)) files.node(path.slice(0, path.lastIndexOf("/")) || "/");
      gather(wire, stream, (content) => {
        files.write(path, content, { how: hows[how] ?? "replace", parents, uid, ...(hasField(payload, 2) ? { mode } : {}) });
        wire.ok(stream, answers.written, { bytes: content.length });
      });
    },
    TAR_IN(stream, payload) {
      const { folder, user, ...bounds } = decodeFields("TAR_IN", shapes.TAR_IN, payload);
      const uid = wire.uidOf(user);
      gather(wire, stream, (archive) => {
        unpackIntoMemory(files, folder, archive, { ...bounds, uid }).then(
          (unpacked) => wire.ok(stream, answers.unpacked, unpacked),
          (error: unknown) => wire.fail(stream, error),
        );
      });
    },
    TAR_OUT(stream, payload) {
      const { path, exclude, bytesMax, user } = decodeFields("TAR_OUT", shapes.TAR_OUT, payload);
      files.node(path);
      confirm(stream);
      sendAll(wire, stream, packFromMemory(files, path, { exclude, bytesMax, uid: wire.uidOf(user) }));
    },
    WATCH(stream, payload) {
      const { path, recursive } = decodeFields("WATCH", shapes.WATCH, payload);
      files.node(path);
      const stop = files.onChange((kind, changed, isDirectory) => {
        const below = changed.startsWith(`${path}/`) ? changed.slice(path.length + 1) : null;
        if (below !== null && (recursive || !below.includes("/")))
          wire.event(stream, { kind: watchNumbers[kind], path: changed, isDirectory });
      });
      wire.open(stream, { onFrame: (type) => type === "CANCEL" && stop(), onCancel: stop });
      confirm(stream);
    },
  };
  return {
    handle(type, stream, payload) {
      const handler = handlers[type];
      if (handler === undefined) throw protocolError(`${type} from the host`);
      handler(stream, payload);
    },
  };
}

/** Collects the host's data until its end, crediting all of it at once since it stays in memory anyway. */
function gather(wire: Wire, stream: number, then: (content: Buffer) => void): void {
  const pieces: Buffer[] = [];
  wire.open(stream, {
    onFrame(type, payload) {
      if (type === "DATA") {
        pieces.push(Buffer.from(payload));
        wire.send("CREDIT", stream, u32(payload.length));
      } else if (type === "END") {
        wire.close(stream);
        then(Buffer.concat(pieces));
      }
    },
  });
}

/** Sends pieces as the host gives credit, then `END`, or an error instead. */
function sendAll(wire: Wire, stream: number, pieces: Iterable<Buffer>): void {
  const source = cut(pieces);
  let credit = STREAM_WINDOW;
  const pump = () => {
    try {
      while (credit >= DATA_BYTES) {
        const { done, value } = source.next();
        if (done) {
          wire.close(stream);
          wire.send("END", stream);
          return;
        }
        credit -= value.length;
        wire.send("DATA", stream, value);
      }
    } catch (error) {
      wire.fail(stream, error);
    }
  };
  wire.open(stream, {
    onFrame(type, payload) {
      if (type !== "CREDIT") return;
      credit += payload.readUInt32LE(0);
      pump();
    },
  });
  pump();
}

export function* cut(pieces: Iterable<Buffer>): Generator<Buffer, undefined, void> {
  for (const piece of pieces) for (let at = 0; at < piece.length; at += DATA_BYTES) yield piece.subarray(at, at + DATA_BYTES);
  return undefined;
}

/** Whether the field was sent: a mode of 0 differs from an absent mode. */
export function hasField(payload: Buffer, tag: number): boolean {
  for (let at = 0; at + 5 <= payload.length; at += 5 + payload.readUInt32LE(at + 1)) if (payload[at] === tag) return true;
  return false;
}

export function u32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32LE(value);
  return bytes;
}
