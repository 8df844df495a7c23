import { CaissonError } from "../contract/error.ts";

/** The parts of the tar format that `cp` writes and reads: ustar headers, pax records, GNU long names. */
export const BLOCK_BYTES = 512;
const USTAR_SIZE_MAX = 0o77777777777;
/** A pax or long-name record bigger than this is no name, but an attack. */
export const EXTENSION_BYTES_MAX = 64 * 1024;

export type EntryKind = "file" | "directory" | "link" | "hardLink" | "paxRecords" | "paxGlobal" | "longName" | "longLink";

export interface TarHeader {
  kind: EntryKind;
  name: string;
  linkTarget: string;
  sizeBytes: number;
  mode: number;
  modifiedSeconds: number;
}

const kinds: Readonly<Record<string, EntryKind>> = {
  "\0": "file",
  "0": "file",
  "1": "hardLink",
  "2": "link",
  "5": "directory",
  "7": "file",
  g: "paxGlobal",
  x: "paxRecords",
  L: "longName",
  K: "longLink",
};
const letters = { file: "0", directory: "5", link: "2" } as const;

/** Header blocks of one entry: pax records first where ustar's fields are too small. */
export function encodeHeader(header: TarHeader & { kind: "file" | "directory" | "link" }): Uint8Array {
  const records: string[] = [];
  const bytes = (text: string) => Buffer.byteLength(text);
  if (bytes(header.name) > 100) records.push(paxRecord("path", header.name));
  if (bytes(header.linkTarget) > 100) records.push(paxRecord("linkpath", header.linkTarget));
  if (header.sizeBytes > USTAR_SIZE_MAX) records.push(paxRecord("size", String(header.sizeBytes)));
  const main = ustar({ ...header, letter: letters[header.kind], sizeBytes: Math.min(header.sizeBytes, USTAR_SIZE_MAX) });
  if (records.length === 0) return main;
  const body = Buffer.from(records.join(""));
  const extension = ustar({ ...header, name: "pax", linkTarget: "", letter: "x", sizeBytes: body.length, mode: 0o644 });
  return Buffer.concat([extension, body, padding(body.length), main]);
}

/** Zeros up to the next block. */
export function padding(sizeBytes: number): Uint8Array {
  return new Uint8Array((BLOCK_BYTES - (sizeBytes % BLOCK_BYTES)) % BLOCK_BYTES);
}

/** Null for a block of zeros, which ends an archive. Throws `unsafe` for what is not a header or not a kind we make. */
export function decodeHeader(block: Uint8Array): TarHeader | null {
  const view = Buffer.from(block.buffer, block.byteOffset, block.byteLength);
  if (view.every((byte) => byte === 0)) return null;
  let sum = 8 * 0x20;
  for (const [index, byte] of view.entries()) if (index < 148 || index >= 156) sum += byte;
  if (octal(view, 148, 8) !== sum) throw new CaissonError("unsafe", "the archive is damaged: a header's checksum is wrong");
  const letter = String.fromCharCode(view[156] as number);
  const kind = kinds[letter];
  if (kind === undefined)
    throw new CaissonError(
      "unsafe",
      `the archive has an entry of kind ${JSON.stringify(letter)}, which is neither a file, a folder nor a link`,
    );
  const prefix = text(view, 257, 6) === "ustar" ? text(view, 345, 155) : "";
  const name = text(view, 0, 100);
  return {
    kind,
    name: prefix === "" ? name : `${prefix}/${name}`,
    linkTarget: text(view, 157, 100),
    sizeBytes: octal(view, 124, 12),
    mode: octal(view, 100, 8) & 0o777,
    modifiedSeconds: octal(view, 136, 12),
  };
}

/** The records of a pax header. Throws `unsafe` for malformed ones. */
export function decodePax(body: Uint8Array): Map<string, string> {
  const records = new Map<string, string>();
  const view = Buffer.from(body);
  let offset = 0;
  while (offset < view.length) {
    const space = view.indexOf(0x20, offset);
    const length = space < 0 ? Number.NaN : Number(view.toString("latin1", offset, space));
    const end = offset + length;
    if (!Number.isInteger(length) || end > view.length || end <= space + 1)
      throw new CaissonError("unsafe", "the archive is damaged: a pax record is malformed");
    const record = view.toString("utf8", space + 1, end - 1);
    const equals = record.indexOf("=");
    if (equals > 0) records.set(record.slice(0, equals), record.slice(equals + 1));
    offset = end;
  }
  return records;
}

function paxRecord(key: string, value: string): string {
  const rest = ` ${key}=${value}\n`;
  const restBytes = Buffer.byteLength(rest);
  let length = restBytes + String(restBytes).length;
  // The length counts its own digits, which may push it over the next power of ten.
  if (String(length).length + restBytes !== length) length = restBytes + String(length).length;
  return `${length}${rest}`;
}

function ustar(fields: {
  name: string;
  linkTarget: string;
  letter: string;
  sizeBytes: number;
  mode: number;
  modifiedSeconds: number;
}): Uint8Array {
  const block = Buffer.alloc(BLOCK_BYTES);
  const number = (value: number, offset: number, width: number) =>
    block.write(
      `${Math.floor(value)
        .toString(8)
        .padStart(width - 1, "0")}\0`,
      offset,
      "latin1",
    );
  Buffer.from(fields.name).copy(block, 0, 0, 100);
  number(fields.mode & 0o777, 100, 8);
  number(0, 108, 8);
  number(0, 116, 8);
  number(fields.sizeBytes, 124, 12);
  number(Math.max(0, fields.modifiedSeconds), 136, 12);
  block.fill(0x20, 148, 156);
  block.write(fields.letter, 156, "latin1");
  Buffer.from(fields.linkTarget).copy(block, 157, 0, 100);
  block.write("ustar\x0000", 257, "latin1");
  let sum = 0;
  for (const byte of block) sum += byte;
  block.write(`${sum.toString(8).padStart(6, "0")}\0 `, 148, "latin1");
  return block;
}

function text(view: Buffer, offset: number, width: number): string {
  const end = view.indexOf(0, offset);
  return view.toString("utf8", offset, end < 0 || end > offset + width ? offset + width : end);
}

function octal(view: Buffer, offset: number, width: number): number {
  const digits = view
    .toString("latin1", offset, offset + width)
    .replaceAll("\0", " ")
    .trim();
  if (!/^[0-7]*$/.test(digits)) throw new CaissonError("unsafe", "the archive is damaged: a header's number is malformed");
  return digits === "" ? 0 : Number.parseInt(digits, 8);
}
