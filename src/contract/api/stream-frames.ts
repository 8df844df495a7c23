import { CaissonError } from "../error/error.ts";

/**
 * Binary frames of a process: one byte for the stream, for output the offset of the data in that stream as eight bytes,
 * big-endian, and then the data.
 */
const STDIN = 0;
const outputStreams = { stdout: 1, stderr: 2 } as const;
const OFFSET_BYTES = 8;

export type OutputStream = keyof typeof outputStreams;

export interface OutputFrame {
  stream: OutputStream;
  /** Offset of the data in its stream. */
  offset: number;
  data: Uint8Array;
}

export function outputFrame({ stream, offset, data }: OutputFrame): Uint8Array {
  const frame = new Uint8Array(1 + OFFSET_BYTES + data.length);
  frame[0] = outputStreams[stream];
  new DataView(frame.buffer).setBigUint64(1, BigInt(offset));
  frame.set(data, 1 + OFFSET_BYTES);
  return frame;
}

/** Parses an output frame. The data is a view of the frame. Throws `protocol`. */
export function readOutputFrame(frame: Uint8Array): OutputFrame {
  const stream = frame[0] === outputStreams.stdout ? "stdout" : frame[0] === outputStreams.stderr ? "stderr" : null;
  if (stream === null || frame.length < 1 + OFFSET_BYTES) throw new CaissonError("protocol", "malformed output frame");
  const offset = Number(new DataView(frame.buffer, frame.byteOffset).getBigUint64(1));
  if (!Number.isSafeInteger(offset)) throw new CaissonError("protocol", "the offset of an output frame is too large");
  return { stream, offset, data: frame.subarray(1 + OFFSET_BYTES) };
}

export function stdinFrame(data: Uint8Array): Uint8Array {
  const frame = new Uint8Array(1 + data.length);
  frame[0] = STDIN;
  frame.set(data, 1);
  return frame;
}

/** Parses an input frame. The data is a view of the frame. Throws `invalid`. */
export function readStdinFrame(frame: Uint8Array): Uint8Array {
  if (frame[0] !== STDIN) throw new CaissonError("invalid", "an input frame must begin with 0");
  return frame.subarray(1);
}
