import { FRAME_HEADER_BYTES, frameCode, protocolError, writeFrameHeader } from "./frame.ts";
import { readU64, writeU64 } from "./u64.ts";

/** The payloads of the hot path, which do not consist of fields. */

const OUTPUT_HEAD_BYTES = 9;

/** The descriptor byte of `OUTPUT` and `ACK`. */
export const STDOUT = 1;
export const STDERR = 2;

export function encodeAck(stream: number, descriptor: 1 | 2, offset: number): Buffer {
  const frame = Buffer.allocUnsafe(FRAME_HEADER_BYTES + 9);
  writeFrameHeader(frame, frameCode.ACK, stream, 9);
  frame[FRAME_HEADER_BYTES] = descriptor;
  writeU64(frame, FRAME_HEADER_BYTES + 1, offset);
  return frame;
}

/** Encodes the head of a `STDIN` frame; the data is written after it, uncopied. */
export function encodeStdinHead(stream: number, offset: number, dataBytes: number): Buffer {
  const head = Buffer.allocUnsafe(FRAME_HEADER_BYTES + 8);
  writeFrameHeader(head, frameCode.STDIN, stream, 8 + dataBytes);
  writeU64(head, FRAME_HEADER_BYTES, offset);
  return head;
}

export function encodeStdinEnd(stream: number, totalBytes: number): Buffer {
  const frame = Buffer.allocUnsafe(FRAME_HEADER_BYTES + 8);
  writeFrameHeader(frame, frameCode.STDIN_END, stream, 8);
  writeU64(frame, FRAME_HEADER_BYTES, totalBytes);
  return frame;
}

/** Encodes the head of a `DATA` frame; the data is written after it, uncopied. */
export function encodeDataHead(stream: number, dataBytes: number): Buffer {
  const head = Buffer.allocUnsafe(FRAME_HEADER_BYTES);
  writeFrameHeader(head, frameCode.DATA, stream, dataBytes);
  return head;
}

export function encodeCredit(stream: number, bytes: number): Buffer {
  const frame = Buffer.allocUnsafe(FRAME_HEADER_BYTES + 4);
  writeFrameHeader(frame, frameCode.CREDIT, stream, 4);
  frame.writeUInt32LE(bytes, FRAME_HEADER_BYTES);
  return frame;
}

export function decodeCredit(payload: Buffer): number {
  if (payload.length !== 4) throw protocolError(`CREDIT of ${payload.length} bytes instead of 4`);
  return payload.readUInt32LE(0);
}

export function decodeStdinAck(payload: Buffer): number {
  if (payload.length !== 8) throw protocolError(`STDIN_ACK of ${payload.length} bytes instead of 8`);
  return readU64(payload, 0, "STDIN_ACK");
}

/** Decodes the part of an `OUTPUT` that precedes its bytes. */
export function decodeOutputHead(head: Buffer): { descriptor: 1 | 2; offset: number } {
  if (head.length < OUTPUT_HEAD_BYTES) throw protocolError(`OUTPUT of ${head.length} bytes`);
  const descriptor = head[0];
  if (descriptor !== STDOUT && descriptor !== STDERR) throw protocolError(`OUTPUT of descriptor ${descriptor}`);
  return { descriptor, offset: readU64(head, 1, "OUTPUT") };
}

const TOKEN_BYTES = 4;

/** Encodes an answer to a datagram. No bytes mean that there is no answer. */
export function encodeDatagram(stream: number, token: number, data: Uint8Array): Buffer {
  const frame = Buffer.allocUnsafe(FRAME_HEADER_BYTES + TOKEN_BYTES + data.length);
  writeFrameHeader(frame, frameCode.DATAGRAM, stream, TOKEN_BYTES + data.length);
  frame.writeUInt32LE(token, FRAME_HEADER_BYTES);
  frame.set(data, FRAME_HEADER_BYTES + TOKEN_BYTES);
  return frame;
}

export function decodeDatagram(payload: Buffer): { token: number; data: Buffer } {
  if (payload.length < TOKEN_BYTES) throw protocolError(`DATAGRAM of ${payload.length} bytes`);
  return { token: payload.readUInt32LE(0), data: Buffer.from(payload.subarray(TOKEN_BYTES)) };
}
