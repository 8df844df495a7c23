import { connect, type Socket } from "node:net";
import { FRAME_BYTES_MAX } from "../contract/api/stream-paths.ts";
import type { AnySocket, OpenSocket } from "./stream-socket.ts";

/**
 * WebSockets over a Unix socket, using only Node's `net`: loading the package `ws`, with TLS and compression, would
 * take longer than everything else a command does with a station. The peer is our own station, on a file that only its
 * owner can open, without intermediaries that could misread frames. So the mask that a client must send is zeros, and
 * the key is not a secret.
 */
export function unixWebSockets(socketPath: string): OpenSocket {
  return (url, { protocol }) => {
    const { pathname, search } = new URL(url);
    return openSocket(connect({ path: socketPath }), { path: `${pathname}${search}`, protocol });
  };
}

const KEY = "Y2Fpc3Nvbi1sb2NhbC0wMQ==";
const HEAD_BYTES_MAX = 16 * 1024;
/** The maximum message size: a full frame plus its header. */
const MESSAGE_BYTES_MAX = FRAME_BYTES_MAX + 1024;
/** The close codes for a socket that ended without a close message, and for a message without a code. */
const ABNORMAL = 1006;
const NO_CODE = 1005;
const opcodes = { continuation: 0, text: 1, binary: 2, close: 8, ping: 9, pong: 10 } as const;

function openSocket(socket: Socket, { path, protocol }: { path: string; protocol: string }): AnySocket {
  let state: "opening" | "open" | "closing" | "closed" = "opening";
  const write = (opcode: number, data: Uint8Array) => {
    socket.write(headOf(opcode, data.length));
    if (data.length > 0) socket.write(data);
  };
  const own: AnySocket = {
    binaryType: "arraybuffer",
    onopen: null,
    onmessage: null,
    onerror: null,
    onclose: null,
    send(data) {
      if (state !== "open") return;
      if (typeof data === "string") write(opcodes.text, Buffer.from(data));
      else write(opcodes.binary, data);
    },
    close(code = 1000) {
      if (state === "opening") socket.destroy();
      if (state !== "open") return;
      state = "closing";
      write(opcodes.close, Buffer.from([code >> 8, code & 255]));
    },
  };
  const tell = (what: "onopen" | "onmessage" | "onerror" | "onclose", event: object = {}) => own[what]?.(event as never);
  const onEnd = (code: number) => {
    if (state === "closed") return;
    const wasOpening = state === "opening";
    state = "closed";
    socket.destroy();
    if (wasOpening) tell("onerror");
    tell("onclose", { code });
  };
  const reader = createReader({
    opened() {
      state = "open";
      tell("onopen");
    },
    message: (data) => tell("onmessage", { data }),
    ping: (data) => write(opcodes.pong, data),
    closed(data) {
      if (state === "open") write(opcodes.close, data.subarray(0, 2));
      onEnd(data.length >= 2 ? data.readUInt16BE(0) : NO_CODE);
    },
  });
  socket.once("connect", () => socket.write(requestOf(path, protocol)));
  socket.on("data", (chunk) => {
    if (state !== "closed" && !reader.take(chunk)) onEnd(ABNORMAL);
  });
  socket.on("error", () => onEnd(ABNORMAL)).on("close", () => onEnd(ABNORMAL));
  return own;
}

interface Heard {
  opened(): void;
  message(data: string | ArrayBuffer): void;
  ping(data: Buffer): void;
  closed(data: Buffer): void;
}

/** Parses frames, however they are split. `take` returns false for a protocol violation. */
function createReader(to: Heard): { take(chunk: Buffer): boolean } {
  let rest: Buffer = Buffer.alloc(0);
  let isOpen = false;
  let parts: { opcode: number; chunks: Buffer[]; bytes: number } | null = null;
  const takeHead = (): boolean => {
    const end = rest.indexOf("\r\n\r\n");
    if (end < 0) return rest.length <= HEAD_BYTES_MAX;
    if (!rest.toString("latin1", 0, end).startsWith("HTTP/1.1 101 ")) return false;
    rest = rest.subarray(end + 4);
    isOpen = true;
    to.opened();
    return true;
  };
  const takePart = ({ opcode, isLast, data }: Frame): boolean => {
    parts ??= { opcode, chunks: [], bytes: 0 };
    parts.chunks.push(data);
    parts.bytes += data.length;
    if (parts.bytes > MESSAGE_BYTES_MAX) return false;
    if (!isLast) return true;
    const whole = parts.chunks.length === 1 ? data : Buffer.concat(parts.chunks);
    const isText = parts.opcode === opcodes.text;
    parts = null;
    to.message(isText ? whole.toString("utf8") : copyOf(whole));
    return true;
  };
  return {
    take(chunk) {
      rest = rest.length === 0 ? chunk : Buffer.concat([rest, chunk]);
      if (!isOpen && !takeHead()) return false;
      while (isOpen) {
        const frame = frameIn(rest);
        if (frame === null) break;
        if (frame === "malformed") return false;
        rest = rest.subarray(frame.bytes);
        if (frame.opcode === opcodes.ping) to.ping(frame.data);
        else if (frame.opcode === opcodes.close) to.closed(frame.data);
        else if (frame.opcode !== opcodes.pong && !takePart(frame)) return false;
      }
      return true;
    },
  };
}

function requestOf(path: string, protocol: string): string {
  return [
    `GET ${path} HTTP/1.1`,
    "Host: station",
    "Connection: Upgrade",
    "Upgrade: websocket",
    "Sec-WebSocket-Version: 13",
    `Sec-WebSocket-Key: ${KEY}`,
    `Sec-WebSocket-Protocol: ${protocol}`,
    "",
    "",
  ].join("\r\n");
}

/** Builds a frame head with an all-zero mask. */
function headOf(opcode: number, bytes: number): Buffer {
  const long = bytes < 126 ? 0 : bytes < 65_536 ? 2 : 8;
  const head = Buffer.alloc(2 + long + 4);
  head[0] = 0x80 | opcode;
  head[1] = 0x80 | (long === 0 ? bytes : long === 2 ? 126 : 127);
  if (long === 2) head.writeUInt16BE(bytes, 2);
  if (long === 8) head.writeBigUInt64BE(BigInt(bytes), 2);
  return head;
}

interface Frame {
  opcode: number;
  isLast: boolean;
  data: Buffer;
  /** Size including the head. */
  bytes: number;
}

/** Returns null if the frame is incomplete. */
function frameIn(buffer: Buffer): Frame | null | "malformed" {
  if (buffer.length < 2) return null;
  const [first = 0, second = 0] = buffer;
  // Only a client may request extensions and send masked frames.
  if ((first & 0x70) !== 0 || (second & 0x80) !== 0) return "malformed";
  const short = second & 0x7f;
  const long = short < 126 ? 0 : short === 126 ? 2 : 8;
  if (buffer.length < 2 + long) return null;
  const length = long === 0 ? short : long === 2 ? buffer.readUInt16BE(2) : Number(buffer.readBigUInt64BE(2));
  if (length > MESSAGE_BYTES_MAX) return "malformed";
  const bytes = 2 + long + length;
  if (buffer.length < bytes) return null;
  return { opcode: first & 0x0f, isLast: (first & 0x80) !== 0, data: buffer.subarray(2 + long, bytes), bytes };
}

/** Copies to a separate `ArrayBuffer`, as in a browser. */
function copyOf(data: Buffer): ArrayBuffer {
  const copy = new ArrayBuffer(data.length);
  new Uint8Array(copy).set(data);
  return copy;
}
