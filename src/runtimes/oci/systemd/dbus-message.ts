import { type DbusValue, malformedError, marshal, unmarshal } from "./dbus-value.ts";

/** The parts of a message that a caller needs: which call it answers, its subject and its content. */
export interface DbusMessage {
  type: "call" | "return" | "error" | "signal";
  serial: number;
  replySerial: number | null;
  path: string | null;
  interface: string | null;
  member: string | null;
  errorName: string | null;
  body: DbusValue[];
}

export interface DbusCall {
  /** Absent on a direct connection to the service, without a bus in between. */
  destination?: string | undefined;
  path: string;
  interface: string;
  member: string;
  signature?: string;
  body?: readonly DbusValue[];
}

const LITTLE_ENDIAN = 0x6c;
const PROTOCOL_VERSION = 1;
const FIXED_BYTES = 16;
/** Our requests and their answers take a few hundred bytes; the protocol would allow 128 MiB. */
const MESSAGE_BYTES_MAX = 1024 * 1024;
const types = ["call", "return", "error", "signal"] as const;
const field = { path: 1, interface: 2, member: 3, errorName: 4, replySerial: 5, destination: 6, signature: 8 } as const;

export function encodeCall(call: DbusCall, serial: number): Buffer {
  const body = marshal(call.signature ?? "", call.body ?? []);
  const fields: DbusValue[] = [
    [field.path, { signature: "o", value: call.path }],
    [field.interface, { signature: "s", value: call.interface }],
    [field.member, { signature: "s", value: call.member }],
    ...(call.destination === undefined ? [] : [[field.destination, { signature: "s", value: call.destination }]]),
    ...(call.signature === undefined ? [] : [[field.signature, { signature: "g", value: call.signature }]]),
  ];
  const header = marshal("yyyyuua(yv)", [LITTLE_ENDIAN, 1 + types.indexOf("call"), 0, PROTOCOL_VERSION, body.length, serial, fields]);
  return Buffer.concat([header, Buffer.alloc(padding(header.length)), body]);
}

/** Returns the first message and its length in bytes, or null while it is incomplete. Throws `protocol`. */
export function decodeMessage(bytes: Buffer): { message: DbusMessage; length: number } | null {
  if (bytes.length < FIXED_BYTES) return null;
  if (bytes[0] !== LITTLE_ENDIAN || bytes[3] !== PROTOCOL_VERSION)
    throw malformedError("a message with another byte order or protocol version");
  const bodyBytes = bytes.readUInt32LE(4);
  const headerBytes = FIXED_BYTES + bytes.readUInt32LE(12);
  const bodyStart = headerBytes + padding(headerBytes);
  const length = bodyStart + bodyBytes;
  if (length > MESSAGE_BYTES_MAX) throw malformedError(`a message of ${length} bytes`);
  if (bytes.length < length) return null;
  const type = types[(bytes[1] ?? 0) - 1];
  if (type === undefined) throw malformedError(`a message of type ${bytes[1]}`);
  const [fields] = unmarshal("a(yv)", bytes.subarray(12, headerBytes), { offset: 12 });
  const found = new Map((fields as [number, { value: DbusValue }][]).map(([code, { value }]) => [code, value]));
  const text = (code: number) => {
    const value = found.get(code);
    return typeof value === "string" ? value : null;
  };
  const replySerial = found.get(field.replySerial);
  const body = unmarshal(text(field.signature) ?? "", bytes.subarray(bodyStart, length));
  return {
    message: {
      type,
      serial: bytes.readUInt32LE(8),
      replySerial: typeof replySerial === "number" ? replySerial : null,
      path: text(field.path),
      interface: text(field.interface),
      member: text(field.member),
      errorName: text(field.errorName),
      body,
    },
    length,
  };
}

/** A body begins at a multiple of eight bytes. */
function padding(length: number): number {
  return (8 - (length % 8)) % 8;
}
