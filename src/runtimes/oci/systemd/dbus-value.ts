import { CaissonError } from "../../../contract/error/error.ts";

export interface DbusVariant {
  signature: string;
  value: DbusValue;
}
/** A tuple for a struct, a list for an array. The signature tells them apart. */
export type DbusValue = string | number | bigint | boolean | DbusVariant | DbusValue[];

/** The protocol allows 64 levels; the messages that we read have only a few. */
const DEPTH_MAX = 16;
const ARRAY_BYTES_MAX = 1024 * 1024;

/** Encodes values for the wire, little-endian. Supports the types of our calls: y b u t s o g v a ( ). */
export function marshal(signature: string, values: readonly DbusValue[]): Buffer {
  const out: number[] = [];
  const types = typesIn(signature);
  if (types.length !== values.length) throw new Error(`${values.length} values for the signature ${signature}`);
  for (const [index, type] of types.entries()) write(out, type, values[index] as DbusValue);
  return Buffer.from(out);
}

function write(out: number[], type: string, value: DbusValue): void {
  pad(out, alignmentOf(type));
  switch (type[0]) {
    case "y":
      out.push(value as number);
      return;
    case "b":
      number(out, value === true ? 1 : 0, 4);
      return;
    case "u":
      number(out, value as number, 4);
      return;
    case "t":
      number(out, value as bigint, 8);
      return;
    case "s":
    case "o":
      number(out, Buffer.byteLength(value as string), 4);
      out.push(...Buffer.from(value as string), 0);
      return;
    case "g":
      out.push((value as string).length, ...Buffer.from(value as string), 0);
      return;
    case "v": {
      const variant = value as DbusVariant;
      write(out, "g", variant.signature);
      write(out, variant.signature, variant.value);
      return;
    }
    case "(":
      for (const [index, member] of typesIn(type.slice(1, -1)).entries()) write(out, member, (value as DbusValue[])[index] as DbusValue);
      return;
    case "a": {
      const lengthAt = out.length;
      number(out, 0, 4);
      pad(out, alignmentOf(type.slice(1)));
      const start = out.length;
      for (const item of value as DbusValue[]) write(out, type.slice(1), item);
      const length: number[] = [];
      number(length, out.length - start, 4);
      out.splice(lengthAt, 4, ...length);
      return;
    }
    default:
      throw new Error(`the type ${type} cannot be encoded`);
  }
}

/**
 * Decodes values by their signature. `offset` is where the bytes begin in their message, since alignment counts from
 * its start. Throws `protocol`.
 */
export function unmarshal(signature: string, bytes: Buffer, options: { offset?: number } = {}): DbusValue[] {
  const reader = { bytes, at: 0, offset: options.offset ?? 0, depth: 0 };
  return typesIn(signature).map((type) => read(reader, type));
}

interface Reader {
  bytes: Buffer;
  at: number;
  offset: number;
  depth: number;
}

function read(reader: Reader, type: string): DbusValue {
  const { bytes } = reader;
  skip(reader, alignmentOf(type));
  switch (type[0]) {
    case "y":
      return bytes.readUInt8(take(reader, 1));
    case "b":
      return bytes.readUInt32LE(take(reader, 4)) !== 0;
    case "n":
      return bytes.readInt16LE(take(reader, 2));
    case "q":
      return bytes.readUInt16LE(take(reader, 2));
    case "i":
      return bytes.readInt32LE(take(reader, 4));
    case "u":
    case "h":
      return bytes.readUInt32LE(take(reader, 4));
    case "x":
      return bytes.readBigInt64LE(take(reader, 8));
    case "t":
      return bytes.readBigUInt64LE(take(reader, 8));
    case "d":
      return bytes.readDoubleLE(take(reader, 8));
    case "s":
    case "o":
      return text(reader, bytes.readUInt32LE(take(reader, 4)));
    case "g":
      return text(reader, bytes.readUInt8(take(reader, 1)));
    default:
      return deeper(reader, () => readContainer(reader, type));
  }
}

function readContainer(reader: Reader, type: string): DbusValue {
  switch (type[0]) {
    case "v": {
      const signature = read(reader, "g") as string;
      const [only, ...more] = typesIn(signature);
      if (only === undefined || more.length > 0) throw malformedError(`a variant of ${more.length + 1} types`);
      return { signature, value: read(reader, only) };
    }
    case "(":
    case "{":
      return typesIn(type.slice(1, -1)).map((member) => read(reader, member));
    case "a": {
      const length = reader.bytes.readUInt32LE(take(reader, 4));
      if (length > ARRAY_BYTES_MAX) throw malformedError(`an array of ${length} bytes`);
      skip(reader, alignmentOf(type.slice(1)));
      const end = reader.at + length;
      const items: DbusValue[] = [];
      while (reader.at < end) {
        const before = reader.at;
        items.push(read(reader, type.slice(1)));
        if (reader.at === before) throw malformedError("an array of empty items");
      }
      if (reader.at !== end) throw malformedError("an array that ends in the middle of an item");
      return items;
    }
    default:
      throw malformedError(`a value of the unsupported type ${type}`);
  }
}

function deeper<T>(reader: Reader, make: () => T): T {
  if (reader.depth === DEPTH_MAX) throw malformedError(`values nested deeper than ${DEPTH_MAX}`);
  reader.depth++;
  const result = make();
  reader.depth--;
  return result;
}

function text(reader: Reader, length: number): string {
  const start = take(reader, length);
  take(reader, 1);
  return reader.bytes.toString("utf8", start, start + length);
}

function take(reader: Reader, count: number): number {
  const start = reader.at;
  if (start + count > reader.bytes.length) throw malformedError("a value longer than its message");
  reader.at += count;
  return start;
}

function skip(reader: Reader, alignment: number): void {
  const over = (reader.offset + reader.at) % alignment;
  if (over > 0) take(reader, alignment - over);
}

function pad(out: number[], alignment: number): void {
  while (out.length % alignment !== 0) out.push(0);
}

function number(out: number[], value: number | bigint, count: number): void {
  let rest = BigInt(value);
  for (let index = 0; index < count; index++) {
    out.push(Number(rest & 0xffn));
    rest >>= 8n;
  }
}

function alignmentOf(type: string): number {
  switch (type[0]) {
    case "y":
    case "g":
    case "v":
      return 1;
    case "n":
    case "q":
      return 2;
    case "x":
    case "t":
    case "d":
    case "(":
    case "{":
      return 8;
    default:
      return 4;
  }
}

/** Splits a signature into its complete types: `sa(sv)u` into `s`, `a(sv)`, `u`. Throws `protocol`. */
function typesIn(signature: string): string[] {
  const types: string[] = [];
  for (let at = 0; at < signature.length; ) {
    const end = endOfType(signature, at);
    types.push(signature.slice(at, end));
    at = end;
  }
  return types;
}

function endOfType(signature: string, start: number): number {
  let at = start;
  while (signature[at] === "a") at++;
  if (at >= signature.length) throw malformedError(`the invalid signature ${JSON.stringify(signature)}`);
  if (signature[at] !== "(" && signature[at] !== "{") return at + 1;
  let open = 0;
  for (; at < signature.length; at++) {
    if (signature[at] === "(" || signature[at] === "{") open++;
    if (signature[at] === ")" || signature[at] === "}") open--;
    if (open === 0) return at + 1;
  }
  throw malformedError(`the invalid signature ${JSON.stringify(signature)}`);
}

export function malformedError(what: string): CaissonError {
  return new CaissonError("protocol", `the message bus sent ${what}`);
}
