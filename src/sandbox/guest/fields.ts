import { CaissonError } from "../../contract/error/error.ts";
import { FRAME_HEADER_BYTES, FRAME_PAYLOAD_MAX, type FrameName, frameCode, protocolError, writeFrameHeader } from "./frame.ts";
import { readU64, writeU64 } from "./u64.ts";

/** The type of each field kind. An absent optional field reads as 0, false, "", no bytes or no texts. */
interface Kinds {
  u64: number;
  flag: boolean;
  text: string;
  bytes: Uint8Array;
  texts: readonly string[];
}
type Kind = keyof Kinds;

interface Field<K extends Kind = Kind, Optional extends boolean = boolean> {
  tag: number;
  kind: K;
  optional: Optional;
}
export type Shape = Readonly<Record<string, Field>>;

/** A decoder's result: every field, with an empty value for absent optional ones. */
export type Decoded<S extends Shape> = { -readonly [Name in keyof S]: Kinds[S[Name]["kind"]] };
/** An encoder's input: optional fields may be omitted. */
export type Encodable<S extends Shape> = {
  [Name in keyof S as S[Name]["optional"] extends true ? never : Name]: Kinds[S[Name]["kind"]];
} & {
  [Name in keyof S as S[Name]["optional"] extends true ? Name : never]?: Kinds[S[Name]["kind"]] | undefined;
};

const required = <const K extends Kind>(tag: number, kind: K): Field<K, false> => ({ tag, kind, optional: false });
const optional = <const K extends Kind>(tag: number, kind: K): Field<K, true> => ({ tag, kind, optional: true });

const file = {
  name: required(1, "text"),
  kind: required(2, "u64"),
  sizeBytes: optional(3, "u64"),
  mode: optional(4, "u64"),
  uid: optional(5, "u64"),
  gid: optional(6, "u64"),
  modifiedMs: optional(7, "u64"),
  linkTarget: optional(8, "text"),
} as const;
const user = optional(5, "text");
const fromOffsets = { stdoutFrom: optional(12, "u64"), stderrFrom: optional(13, "u64") } as const;

/** Every payload that consists of fields, declared once: encoder, decoder and types derive from it. */
export const shapes = {
  HELLO: { version: required(1, "u64"), token: optional(2, "bytes") },
  WELCOME: {
    version: required(1, "u64"),
    guestVersion: optional(2, "text"),
    bootId: required(3, "bytes"),
    uid: required(4, "u64"),
    gid: required(5, "u64"),
    rootAllowed: optional(6, "flag"),
    fences: optional(7, "flag"),
    keepsLast: optional(8, "flag"),
  },
  HEARTBEAT: { uptimeMs: required(1, "u64"), processes: optional(2, "u64"), lateMs: optional(3, "u64") },
  ERROR: { code: required(1, "u64"), message: optional(2, "text"), errno: optional(3, "u64") },
  SHUTDOWN: { graceMs: optional(1, "u64") },
  FENCE: { name: required(1, "text"), epoch: required(2, "u64") },
  SPAWN: {
    ref: required(1, "text"),
    argv: required(2, "texts"),
    env: optional(3, "texts"),
    cwd: optional(4, "text"),
    user,
    pty: optional(6, "flag"),
    cols: optional(7, "u64"),
    rows: optional(8, "u64"),
    stdin: optional(9, "flag"),
    timeoutMs: optional(10, "u64"),
    outputBytesMax: optional(11, "u64"),
    ...fromOffsets,
    keepLast: optional(14, "flag"),
  },
  ATTACH: { ref: required(1, "text"), ...fromOffsets },
  STARTED: {
    ref: required(1, "text"),
    pid: required(2, "u64"),
    existing: optional(3, "flag"),
    stdinBytes: optional(4, "u64"),
    pty: optional(5, "flag"),
    stdinWritten: optional(6, "u64"),
    stdoutBytes: optional(7, "u64"),
    stderrBytes: optional(8, "u64"),
    ended: optional(9, "flag"),
  },
  ENDED: {
    kind: required(1, "u64"),
    exitCode: optional(2, "u64"),
    signal: optional(3, "u64"),
    stdoutBytes: required(4, "u64"),
    stderrBytes: required(5, "u64"),
    durationMs: optional(6, "u64"),
    memoryKills: optional(7, "u64"),
  },
  RESIZE: { cols: required(7, "u64"), rows: required(8, "u64") },
  SIGNAL: { ref: required(1, "text"), signal: required(2, "u64"), tree: optional(3, "flag") },
  FORGET: { ref: required(1, "text") },
  LIST: {},
  KILL: { ref: required(1, "text") },
  STAT: { path: required(1, "text"), follow: optional(2, "flag"), user },
  LISTDIR: { path: required(1, "text"), depth: optional(2, "u64"), entriesMax: optional(3, "u64"), user },
  MKDIR: { path: required(1, "text"), parents: optional(2, "flag"), mode: optional(3, "u64"), user },
  MOVE: { from: required(1, "text"), to: required(2, "text"), replace: optional(3, "flag"), user },
  REMOVE: { path: required(1, "text"), recursive: optional(2, "flag"), user },
  READ: { path: required(1, "text"), offset: optional(2, "u64"), length: optional(3, "u64"), user },
  WRITE: { path: required(1, "text"), mode: optional(2, "u64"), parents: optional(3, "flag"), how: optional(4, "u64"), user },
  WATCH: { path: required(1, "text"), recursive: optional(2, "flag"), user },
  WATCH_EVENT: { kind: required(1, "u64"), path: optional(2, "text"), isDirectory: optional(3, "flag") },
  TAR_IN: {
    folder: required(1, "text"),
    bytesMax: optional(2, "u64"),
    entriesMax: optional(3, "u64"),
    stripComponents: optional(4, "u64"),
    user,
    keepOwner: optional(6, "flag"),
  },
  TAR_OUT: { path: required(1, "text"), exclude: optional(2, "texts"), bytesMax: optional(3, "u64"), user },
  CONNECT: { port: required(1, "u64") },
  LISTENERS: {},
  LISTEN: { port: required(1, "u64"), scope: optional(2, "u64") },
  ACCEPTED: { port: required(1, "u64"), address: optional(2, "text"), addressPort: optional(3, "u64") },
} as const satisfies Partial<Record<FrameName, Shape>>;

/** The fields of `OK`, by the kind of request that it answers. */
export const answers = {
  nothing: {},
  file,
  listed: { truncated: optional(1, "flag") },
  written: { bytes: required(1, "u64") },
  unpacked: { entries: required(1, "u64"), bytes: required(2, "u64") },
} as const satisfies Record<string, Shape>;

/** The fields of `ENTRY`, by the kind of request that it answers. */
export const entries = {
  process: {
    ref: optional(1, "text"),
    pid: required(2, "u64"),
    parentPid: optional(3, "u64"),
    state: required(4, "u64"),
    command: optional(5, "text"),
    uid: optional(6, "u64"),
    startMs: optional(7, "u64"),
    residentBytes: optional(8, "u64"),
    cpuMs: optional(9, "u64"),
    keepsLast: optional(10, "flag"),
  },
  file,
  listener: { port: required(1, "u64"), uid: optional(2, "u64"), address: optional(3, "text") },
} as const satisfies Record<string, Shape>;

const FIELD_HEADER_BYTES = 5;

/**
 * Encodes header and fields into one buffer. Throws `too_large` if they exceed a frame, which is the caller's fault.
 */
export function encodeFields<S extends Shape>(type: FrameName, stream: number, shape: S, values: Encodable<S>): Buffer {
  const valuesByName = values as Record<string, unknown>;
  let size = FRAME_HEADER_BYTES;
  for (const name in shape) {
    const value = valuesByName[name];
    if (value !== undefined) size += encodedBytes((shape[name] as Field).kind, value);
  }
  if (size > FRAME_HEADER_BYTES + FRAME_PAYLOAD_MAX) {
    throw new CaissonError("too_large", `${type} needs ${size} bytes, more than a frame can hold`, {
      hint: "Shorten the arguments or the environment; pass large data through stdin or a file.",
    });
  }
  const frame = Buffer.allocUnsafe(size);
  writeFrameHeader(frame, frameCode[type], stream, size - FRAME_HEADER_BYTES);
  let at = FRAME_HEADER_BYTES;
  for (const name in shape) {
    const value = valuesByName[name];
    if (value === undefined) continue;
    const { tag, kind } = shape[name] as Field;
    if (kind === "texts") for (const text of value as readonly string[]) at = writeText(frame, at, tag, text);
    else if (kind === "text") at = writeText(frame, at, tag, value as string);
    else if (kind === "bytes") {
      frame[at] = tag;
      frame.writeUInt32LE((value as Uint8Array).length, at + 1);
      frame.set(value as Uint8Array, at + FIELD_HEADER_BYTES);
      at += FIELD_HEADER_BYTES + (value as Uint8Array).length;
    } else {
      frame[at] = tag;
      frame.writeUInt32LE(8, at + 1);
      writeU64(frame, at + FIELD_HEADER_BYTES, Number(value));
      at += FIELD_HEADER_BYTES + 8;
    }
  }
  return frame;
}

function encodedBytes(kind: Kind, value: unknown): number {
  if (kind === "u64" || kind === "flag") return FIELD_HEADER_BYTES + 8;
  if (kind === "bytes") return FIELD_HEADER_BYTES + (value as Uint8Array).length;
  if (kind === "text") return FIELD_HEADER_BYTES + Buffer.byteLength(value as string);
  let size = 0;
  for (const text of value as readonly string[]) size += FIELD_HEADER_BYTES + Buffer.byteLength(text);
  return size;
}

function writeText(frame: Buffer, at: number, tag: number, text: string): number {
  const length = frame.write(text, at + FIELD_HEADER_BYTES, "utf8");
  frame[at] = tag;
  frame.writeUInt32LE(length, at + 1);
  return at + FIELD_HEADER_BYTES + length;
}

/**
 * Checks and reads a payload. Unknown tags are skipped. A field that runs past the end, has the wrong size, occurs
 * twice or is missing is a `protocol` error. Invalid UTF-8 becomes replacement characters, because file names inside
 * can be any bytes.
 */
export function decodeFields<S extends Shape>(name: string, shape: S, payload: Buffer): Decoded<S> {
  const result: Record<string, unknown> = {};
  const byTag = tagsOf(shape);
  let at = 0;
  while (at < payload.length) {
    if (payload.length - at < FIELD_HEADER_BYTES) throw protocolError(`a field of ${name} is truncated`);
    const tag = payload[at] as number;
    const length = payload.readUInt32LE(at + 1);
    at += FIELD_HEADER_BYTES;
    if (length > payload.length - at) throw protocolError(`field ${tag} of ${name} exceeds the frame`);
    const field = byTag.get(tag);
    if (field !== undefined) decodeField(name, field, payload, at, length, result);
    at += length;
  }
  for (const key in shape) {
    if (key in result) continue;
    const { kind, optional: mayMiss } = shape[key] as Field;
    if (!mayMiss) throw protocolError(`${name} lacks ${key}`);
    result[key] = emptyValue(kind);
  }
  return result as Decoded<S>;
}

function decodeField(
  name: string,
  { key, kind }: { key: string; kind: Kind },
  payload: Buffer,
  at: number,
  length: number,
  into: Record<string, unknown>,
): void {
  if (kind === "texts") {
    const texts = (into[key] as string[] | undefined) ?? [];
    texts.push(readText(name, key, payload, at, length));
    into[key] = texts;
    return;
  }
  if (key in into) throw protocolError(`${name} has two ${key} fields`);
  if (kind === "text") into[key] = readText(name, key, payload, at, length);
  else if (kind === "bytes") into[key] = Buffer.from(payload.subarray(at, at + length));
  else {
    if (length !== 8) throw protocolError(`${key} of ${name} has ${length} bytes instead of 8`);
    const value = readU64(payload, at, name);
    if (kind === "flag" && value > 1) throw protocolError(`${key} of ${name} is neither 0 nor 1`);
    into[key] = kind === "flag" ? value === 1 : value;
  }
}

function readText(name: string, key: string, payload: Buffer, at: number, length: number): string {
  const text = payload.toString("utf8", at, at + length);
  if (text.includes("\0")) throw protocolError(`${key} of ${name} contains NUL`);
  return text;
}

function emptyValue(kind: Kind): unknown {
  switch (kind) {
    case "u64":
      return 0;
    case "flag":
      return false;
    case "text":
      return "";
    case "bytes":
      return Buffer.alloc(0);
    case "texts":
      return [];
  }
}

const tagCache = new WeakMap<Shape, Map<number, { key: string; kind: Kind }>>();
function tagsOf(shape: Shape): Map<number, { key: string; kind: Kind }> {
  let tags = tagCache.get(shape);
  if (tags === undefined) {
    tags = new Map(Object.entries(shape).map(([key, { tag, kind }]) => [tag, { key, kind }]));
    tagCache.set(shape, tags);
  }
  return tags;
}
