import { deflateSync } from "node:zlib";

const DIGITS = Buffer.from("0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~");
const LINE_BYTES = 52;
/** A length letter, 65 digits and a line break. */
const LINE_TEXT_BYTES_MAX = 67;
const LINES_AT_ONCE = 4096;
/** Larger contents are compressed for speed instead of size. */
const SMALL_BYTES_MAX = 1024 * 1024;
const NEWLINE = 0x0a;

/**
 * Renders git's patch for a binary file: the whole new content, then the whole old one, so the patch can be reversed.
 */
export function* renderBinaryPatch(before: Buffer, after: Buffer): Generator<Buffer> {
  yield Buffer.from("GIT binary patch\n");
  for (const content of [after, before]) {
    yield Buffer.from(`literal ${content.length}\n`);
    yield* base85Lines(deflateSync(content, content.length > SMALL_BYTES_MAX ? { level: 1 } : {}));
    yield Buffer.from("\n");
  }
}

function* base85Lines(packed: Buffer): Generator<Buffer> {
  const step = LINE_BYTES * LINES_AT_ONCE;
  for (let from = 0; from < packed.length; from += step) {
    const part = packed.subarray(from, from + step);
    const text = Buffer.allocUnsafe(Math.ceil(part.length / LINE_BYTES) * LINE_TEXT_BYTES_MAX);
    let end = 0;
    for (let at = 0; at < part.length; at += LINE_BYTES) end = writeLine(part.subarray(at, at + LINE_BYTES), text, end);
    yield text.subarray(0, end);
  }
}

function writeLine(bytes: Buffer, text: Buffer, start: number): number {
  let end = start;
  text[end++] = lengthLetter(bytes.length);
  for (let at = 0; at < bytes.length; at += 4) {
    let value = 0;
    for (let index = 0; index < 4; index++) value = value * 256 + (bytes[at + index] ?? 0);
    for (let digit = 4; digit >= 0; digit--) {
      text[end + digit] = DIGITS[value % 85] as number;
      value = Math.floor(value / 85);
    }
    end += 5;
  }
  text[end++] = NEWLINE;
  return end;
}

/** Encodes a length as A to Z for 1 to 26 bytes and a to z for 27 to 52. */
const lengthLetter = (bytes: number) => (bytes <= 26 ? 64 + bytes : 70 + bytes);
