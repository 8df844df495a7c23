import { readFileSync, writeFileSync } from "node:fs";
import { expect, test } from "vitest";
import { answers, decodeFields, type Encodable, encodeFields, entries, type Shape, shapes } from "./fields.ts";
import { createFrameParser, encodeFrame, FRAME_HEADER_BYTES, type FrameName, frameName, frameTypes } from "./frame.ts";
import {
  decodeCredit,
  decodeDatagram,
  decodeOutputHead,
  decodeStdinAck,
  encodeAck,
  encodeCredit,
  encodeDatagram,
  encodeDataHead,
  encodeStdinEnd,
  encodeStdinHead,
} from "./raw.ts";

const vectorsPath = new URL("../../../guest/vectors/frames.txt", import.meta.url);

interface Vector {
  name: string;
  type: FrameName;
  stream: number;
  frame: Buffer;
  /** Present for payloads that consist of fields. */
  shape?: Shape;
  values?: Record<string, unknown>;
}

const text = (value: string) => Buffer.from(value);
const u64 = (value: number) => {
  const bytes = Buffer.alloc(8);
  bytes.writeBigUInt64LE(BigInt(value));
  return bytes;
};

function fields<S extends Shape>(name: string, type: FrameName, stream: number, shape: S, values: Encodable<S>): Vector {
  return { name, type, stream, frame: encodeFields(type, stream, shape, values), shape, values: values as Record<string, unknown> };
}
function message<Name extends keyof typeof shapes>(
  type: Name,
  stream: number,
  values: Encodable<(typeof shapes)[Name]>,
  variant = "",
): Vector {
  return fields(`${type}${variant}`, type, stream, shapes[type] as Shape, values as never);
}
const raw = (name: string, type: FrameName, stream: number, frame: Buffer): Vector => ({ name, type, stream, frame });

const aFile = {
  name: "src/größe.ts",
  kind: 1,
  sizeBytes: 5_000_000_000,
  mode: 0o644,
  uid: 1000,
  gid: 1000,
  modifiedMs: 1_790_000_000_123,
  linkTarget: "",
};

/** Every frame type with all of its fields, and variants with a different shape. */
const vectors: Vector[] = [
  message("HELLO", 0, { version: 1, token: text("0123456789abcdef") }),
  message("HELLO", 0, { version: 1 }, ".no-token"),
  message("WELCOME", 0, {
    version: 1,
    guestVersion: "0.1.0",
    bootId: Buffer.from("000102030405060708090a0b0c0d0e0f", "hex"),
    uid: 1000,
    gid: 1000,
    rootAllowed: true,
    fences: true,
    keepsLast: true,
  }),
  raw("PING", "PING", 1, encodeFrame("PING", 1, text("12345678"))),
  raw("PONG", "PONG", 1, encodeFrame("PONG", 1, text("12345678"))),
  message("HEARTBEAT", 0, { uptimeMs: 5_000, processes: 3, lateMs: 12 }),
  fields("OK", "OK", 3, answers.nothing, {}),
  fields("OK.file", "OK", 3, answers.file, aFile),
  fields("OK.link", "OK", 3, answers.file, { ...aFile, name: "/workspace/l", kind: 3, sizeBytes: 9, mode: 0o777, linkTarget: "/etc/nope" }),
  fields("OK.listed", "OK", 5, answers.listed, { truncated: true }),
  fields("OK.written", "OK", 7, answers.written, { bytes: 1_048_576 }),
  fields("OK.unpacked", "OK", 9, answers.unpacked, { entries: 42, bytes: 65_536 }),
  message("ERROR", 3, { code: 2, message: "no such file", errno: 2 }),
  raw("DATA", "DATA", 11, Buffer.concat([encodeDataHead(11, 5), text("a\0b\r\n")])),
  raw("END", "END", 11, encodeFrame("END", 11)),
  raw("CREDIT", "CREDIT", 11, encodeCredit(11, 524_288)),
  raw("CANCEL", "CANCEL", 11, encodeFrame("CANCEL", 11)),
  message("SHUTDOWN", 13, { graceMs: 2_000 }),
  message("FENCE", 13, { name: "run_k3v7q2m5x4ab", epoch: 3 }),
  message("SPAWN", 15, {
    ref: "run-1.step:2_x",
    argv: ["sh", "-c", "echo 'ä'; exit 3", ""],
    env: ["PATH=/usr/bin:/bin", "EMPTY=", "LANG=C.UTF-8"],
    cwd: "/workspace/sub dir",
    user: "user",
    pty: true,
    cols: 120,
    rows: 40,
    stdin: true,
    timeoutMs: 30_000,
    outputBytesMax: 10_485_760,
    stdoutFrom: 4_096,
    stderrFrom: 17,
    keepLast: true,
  }),
  message("SPAWN", 17, { ref: "r", argv: ["/bin/true"] }, ".least"),
  message("ATTACH", 19, { ref: "run-1.step:2_x", stdoutFrom: 8_589_934_592, stderrFrom: 0 }),
  message("STARTED", 15, {
    ref: "run-1.step:2_x",
    pid: 7,
    existing: true,
    stdinBytes: 300_000,
    pty: true,
    stdinWritten: 262_144,
    stdoutBytes: 4_102,
    stderrBytes: 17,
    ended: true,
  }),
  raw("OUTPUT.stdout", "OUTPUT", 15, encodeFrame("OUTPUT", 15, Buffer.concat([Buffer.from([1]), u64(4_096), text("hello\n")]))),
  raw(
    "OUTPUT.stderr",
    "OUTPUT",
    15,
    encodeFrame("OUTPUT", 15, Buffer.concat([Buffer.from([2]), u64(8_589_934_592), Buffer.from([0xff, 0])])),
  ),
  raw("ACK", "ACK", 15, encodeAck(15, 1, 4_102)),
  raw("ACK.stderr", "ACK", 15, encodeAck(15, 2, 8_589_934_594)),
  raw("STDIN", "STDIN", 15, Buffer.concat([encodeStdinHead(15, 300_000, 4), text("yes\n")])),
  raw("STDIN_END", "STDIN_END", 15, encodeStdinEnd(15, 300_004)),
  raw("STDIN_ACK", "STDIN_ACK", 15, encodeFrame("STDIN_ACK", 15, u64(300_004))),
  message("ENDED", 15, { kind: 1, exitCode: 3, signal: 0, stdoutBytes: 4_102, stderrBytes: 19, durationMs: 250, memoryKills: 1 }),
  message("ENDED", 15, { kind: 2, exitCode: 0, signal: 9, stdoutBytes: 0, stderrBytes: 0, durationMs: 1, memoryKills: 0 }, ".signaled"),
  message("RESIZE", 15, { cols: 80, rows: 24 }),
  message("SIGNAL", 21, { ref: "run-1.step:2_x", signal: 15, tree: true }),
  message("FORGET", 23, { ref: "run-1.step:2_x" }),
  message("LIST", 25, {}),
  message("KILL", 27, { ref: "run-1.step:2_x" }),
  message("STAT", 29, { path: "/workspace/größe.ts", follow: true, user: "root" }),
  message("LISTDIR", 31, { path: "/workspace", depth: 2, entriesMax: 10_000, user: "user" }),
  message("MKDIR", 33, { path: "/workspace/a/b", parents: true, mode: 0o755, user: "1234" }),
  message("MOVE", 35, { from: "/workspace/a", to: "/workspace/b", replace: true, user: "user" }),
  message("REMOVE", 37, { path: "/workspace/b", recursive: true, user: "user" }),
  message("READ", 39, { path: "/workspace/b", offset: 100, length: 8_589_934_592, user: "user" }),
  message("WRITE", 41, { path: "/workspace/b", mode: 0o755, parents: true, how: 2, user: "user" }),
  message("WATCH", 43, { path: "/workspace", recursive: true, user: "user" }),
  message("WATCH_EVENT", 43, { kind: 4, path: "/workspace/moved", isDirectory: true }),
  message("TAR_IN", 45, {
    folder: "/workspace",
    bytesMax: 1_073_741_824,
    entriesMax: 100_000,
    stripComponents: 1,
    user: "root",
    keepOwner: true,
  }),
  message("TAR_OUT", 47, { path: "/workspace", exclude: ["node_modules", "build/out"], bytesMax: 1_073_741_824, user: "user" }),
  fields("ENTRY.process", "ENTRY", 25, entries.process, {
    ref: "run-1.step:2_x",
    pid: 7,
    parentPid: 1,
    state: 1,
    command: "sh -c echo",
    uid: 1000,
    startMs: 1_234,
    residentBytes: 1_048_576,
    cpuMs: 15,
    keepsLast: true,
  }),
  fields("ENTRY.file", "ENTRY", 31, entries.file, aFile),
  fields("ENTRY.listener", "ENTRY", 51, entries.listener, { port: 8080, uid: 1000, address: "127.0.0.1" }),
  message("CONNECT", 49, { port: 8080 }),
  message("LISTENERS", 51, {}),
  message("LISTEN", 53, { port: 19_080 }),
  message("LISTEN", 55, { port: 53, scope: 2 }, ".datagrams"),
  message("ACCEPTED", 2, { port: 19_080 }),
  message("ACCEPTED", 4, { port: 443, address: "2001:db8::1", addressPort: 443 }, ".transparent"),
  raw("DATAGRAM", "DATAGRAM", 55, encodeDatagram(55, 0xfffffffe, text("q\0"))),
];

/** After a deliberate protocol change, rewrite the file with `UPDATE_VECTORS=1 vitest run vectors`. */
test("encodes the vectors in guest/vectors/frames.txt", () => {
  const contents = vectors.map(({ name, frame }) => `${name}\t${frame.toString("hex")}\n`).join("");
  if (process.env.UPDATE_VECTORS) writeFileSync(vectorsPath, contents);
  expect(readFileSync(vectorsPath, "utf8")).toBe(contents);
});

test("has a vector for every frame type", () => {
  expect(new Set(vectors.map(({ type }) => type))).toEqual(new Set(Object.keys(frameTypes)));
});

test.each(vectors)("decodes $name to what was encoded", ({ type, stream, frame, shape, values }) => {
  const seen: { type: string; stream: number; payload: Buffer }[] = [];
  const receiver = frameTypes[type].direction === "toGuest" ? "guest" : "host";
  const parser = createFrameParser({ receiver, onFrame: (code, id, payload) => seen.push({ type: frameName(code), stream: id, payload }) });
  parser.push(frame);
  expect(seen).toEqual([{ type, stream, payload: frame.subarray(FRAME_HEADER_BYTES) }]);
  if (shape !== undefined) expect(decodeFields(type, shape, seen[0]?.payload as Buffer)).toMatchObject(values ?? {});
});

test("decodes raw payloads", () => {
  const payloadOf = (name: string) => vectors.find((vector) => vector.name === name)?.frame.subarray(FRAME_HEADER_BYTES) as Buffer;
  expect(decodeOutputHead(payloadOf("OUTPUT.stderr"))).toEqual({ descriptor: 2, offset: 8_589_934_592 });
  expect(decodeStdinAck(payloadOf("STDIN_ACK"))).toBe(300_004);
  expect(decodeCredit(payloadOf("CREDIT"))).toBe(524_288);
  expect(decodeDatagram(payloadOf("DATAGRAM"))).toEqual({ token: 0xfffffffe, data: text("q\0") });
});
