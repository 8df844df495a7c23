import { CaissonError } from "../../contract/error/error.ts";

/** The part of DER (ITU-T X.690) that certificates need. Values are complete encodings: tag, length, content. */

const CLASS_CONTEXT = 0x80;
const CONSTRUCTED = 0x20;

export const der = {
  boolean: (value: boolean): Buffer => encode(0x01, Buffer.of(value ? 0xff : 0x00)),
  /** Encodes a non-negative number, most significant byte first. */
  integer(bytes: Buffer | number): Buffer {
    const content = typeof bytes === "number" ? Buffer.of(bytes) : bytes;
    let from = 0;
    while (from < content.length - 1 && content[from] === 0) from += 1;
    const least = content.subarray(from);
    // A leading one bit would make it negative.
    return encode(0x02, ((least[0] ?? 0) & 0x80) === 0 ? least : Buffer.concat([Buffer.of(0), least]));
  },
  bitString: (bytes: Buffer, unusedBits = 0): Buffer => encode(0x03, Buffer.concat([Buffer.of(unusedBits), bytes])),
  octetString: (bytes: Buffer): Buffer => encode(0x04, bytes),
  objectId(dotted: string): Buffer {
    const [first = 0, second = 0, ...rest] = dotted.split(".").map(Number);
    return encode(0x06, Buffer.from([first * 40 + second, ...rest].flatMap(base128)));
  },
  utf8String: (text: string): Buffer => encode(0x0c, Buffer.from(text)),
  /** RFC 5280: two-digit years until 2049, four digits from 2050 on. */
  time(at: Date): Buffer {
    const text = `${at.toISOString().replaceAll(/[-:T]/g, "").slice(0, 14)}Z`;
    return at.getUTCFullYear() < 2050 ? encode(0x17, Buffer.from(text.slice(2))) : encode(0x18, Buffer.from(text));
  },
  sequence: (...items: readonly Buffer[]): Buffer => encode(0x30, Buffer.concat(items)),
  set: (...items: readonly Buffer[]): Buffer => encode(0x31, Buffer.concat(items)),
  /** `[number]` instead of the type's own tag. */
  implicit: (number: number, content: Buffer): Buffer => encode(CLASS_CONTEXT | number, content),
  /** `[number]` around a value. */
  explicit: (number: number, value: Buffer): Buffer => encode(CLASS_CONTEXT | CONSTRUCTED | number, value),
};

/**
 * Returns the complete values inside a sequence or set. Throws `invalid` for a truncated value or an indefinite length.
 */
export function derItems(value: Buffer): Buffer[] {
  const { contentFrom, end } = measure(value, 0);
  const items: Buffer[] = [];
  for (let at = contentFrom; at < end; ) {
    const item = measure(value, at);
    if (item.end > end) throw cutOff();
    items.push(value.subarray(at, item.end));
    at = item.end;
  }
  return items;
}

/** Returns the content of one value, without tag and length. */
export function derContent(value: Buffer): Buffer {
  const { contentFrom, end } = measure(value, 0);
  return value.subarray(contentFrom, end);
}

function encode(tag: number, content: Buffer): Buffer {
  return Buffer.concat([Buffer.of(tag), lengthOf(content.length), content]);
}

function lengthOf(length: number): Buffer {
  if (length < 0x80) return Buffer.of(length);
  const bytes: number[] = [];
  for (let rest = length; rest > 0; rest >>>= 8) bytes.unshift(rest & 0xff);
  return Buffer.of(0x80 | bytes.length, ...bytes);
}

function base128(number: number): number[] {
  const bytes = [number & 0x7f];
  for (let rest = number >>> 7; rest > 0; rest >>>= 7) bytes.unshift((rest & 0x7f) | 0x80);
  return bytes;
}

function measure(bytes: Buffer, at: number): { contentFrom: number; end: number } {
  const first = bytes[at + 1];
  if (first === undefined) throw cutOff();
  const lengthBytes = first < 0x80 ? 0 : first & 0x7f;
  // No certificate needs a length of more than four bytes. A length of zero bytes would be the indefinite form.
  if (first === 0x80 || lengthBytes > 4 || at + 2 + lengthBytes > bytes.length) throw cutOff();
  const length = lengthBytes === 0 ? first : bytes.readUIntBE(at + 2, lengthBytes);
  const contentFrom = at + 2 + lengthBytes;
  if (contentFrom + length > bytes.length) throw cutOff();
  return { contentFrom, end: contentFrom + length };
}

function cutOff(): CaissonError {
  return new CaissonError("invalid", "the certificate's encoding is malformed");
}
