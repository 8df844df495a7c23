import { CaissonError } from "../../contract/error.ts";

export const BLOCK_BYTES = 512;

export type TarKind = "file" | "directory" | "link" | "hardLink";

/** What an archive says of one entry. `name` and `linkTarget` are whatever the archive holds: hostile until checked. */
export interface TarHeader {
  kind: TarKind;
  name: string;
  mode: number;
  sizeBytes: number;
  modifiedMs: number;
  linkTarget: string;
  /** Written when given; never read, since what an archive says of owners is not believed. */
  owner?: { uid: number; gid: number };
}

const NAME_BYTES = 100;
const OCTAL_SIZE_MAX = 0o77777777777;

/** A ustar block, after a pax block where the name, the link's target or the size need one. */
export function encodeTarHeader(header: TarHeader): Buffer {
  const name = header.kind === "directory" && !header.name.endsWith("/") ? `${header.name}/` : header.name;
  const records: [string, string][] = [];
  if (needsPax(name)) records.push(["path", name]);
  if (needsPax(header.linkTarget)) records.push(["linkpath", header.linkTarget]);
  if (header.sizeBytes > OCTAL_SIZE_MAX) records.push(["size", String(header.sizeBytes)]);
  if (header.modifiedMs % 1000 !== 0) records.push(["mtime", (header.modifiedMs / 1000).toFixed(3)]);
  const block = ustarBlock({ ...header, name }, typeFlags[header.kind]);
  if (records.length === 0) return block;
  const pax = Buffer.concat(records.map(paxRecord));
  const paxHeader = { ...header, name: "pax", linkTarget: "", sizeBytes: pax.length, mode: 0o644 };
  return Buffer.concat([ustarBlock(paxHeader, "x"), pax, padding(pax.length), block]);
}

/** Zeros up to the next block. */
export function padding(bytes: number): Buffer {
  return Buffer.alloc((BLOCK_BYTES - (bytes % BLOCK_BYTES)) % BLOCK_BYTES);
}

export const tarEnd = Buffer.alloc(2 * BLOCK_BYTES);

const typeFlags: Readonly<Record<TarKind, string>> = { file: "0", hardLink: "1", link: "2", directory: "5" };

/** One block as it stands, long names not yet joined to it. `null` is a block of zeros. Throws `invalid` for what is no tar. */
export function decodeTarBlock(block: Buffer): { typeFlag: string; header: Omit<TarHeader, "kind"> } | null {
  if (block.every((byte) => byte === 0)) return null;
  const stored = readNumber(block, 148, 8);
  if (checksum(block) !== stored) throw new CaissonError("invalid", "this is not a tar archive, or it is damaged");
  const prefix = block.toString("latin1", 257, 262) === "ustar" ? readString(block, 345, 155) : "";
  const name = readString(block, 0, NAME_BYTES);
  return {
    typeFlag: String.fromCharCode(block[156] as number),
    header: {
      name: prefix === "" ? name : `${prefix}/${name}`,
      mode: readNumber(block, 100, 8) & 0o7777,
      sizeBytes: readNumber(block, 124, 12),
      modifiedMs: readNumber(block, 136, 12) * 1000,
      linkTarget: readString(block, 157, NAME_BYTES),
    },
  };
}

/** The records of a pax header. Throws `invalid`. Keys are data: the result has no prototype. */
export function decodePax(bytes: Buffer): Record<string, string> {
  const records: Record<string, string> = Object.create(null);
  let at = 0;
  while (at < bytes.length) {
    const space = bytes.indexOf(0x20, at);
    const length = space < 0 ? Number.NaN : Number(bytes.toString("latin1", at, space));
    if (!Number.isInteger(length) || length < 5 || at + length > bytes.length || bytes[at + length - 1] !== 0x0a) {
      throw new CaissonError("invalid", "the archive has a damaged pax header");
    }
    const record = bytes.toString("utf8", space + 1, at + length - 1);
    const equals = record.indexOf("=");
    if (equals < 1) throw new CaissonError("invalid", "the archive has a damaged pax header");
    records[record.slice(0, equals)] = record.slice(equals + 1);
    at += length;
  }
  return records;
}

function ustarBlock(header: TarHeader, typeFlag: string): Buffer {
  const block = Buffer.alloc(BLOCK_BYTES);
  writeCut(block, header.name, 0);
  writeOctal(block, header.mode, 100, 8);
  writeOctal(block, header.owner?.uid ?? 0, 108, 8);
  writeOctal(block, header.owner?.gid ?? 0, 116, 8);
  writeOctal(block, Math.min(header.sizeBytes, OCTAL_SIZE_MAX), 124, 12);
  writeOctal(block, Math.max(0, Math.floor(header.modifiedMs / 1000)), 136, 12);
  block.write(typeFlag, 156, "latin1");
  writeCut(block, header.linkTarget, 157);
  block.write("ustar\x0000", 257, "latin1");
  writeOctal(block, checksum(block), 148, 7);
  block[155] = 0x20;
  return block;
}

function needsPax(text: string): boolean {
  return Buffer.byteLength(text) > NAME_BYTES || /[^\x20-\x7e]/.test(text);
}

function paxRecord([key, value]: [string, string]): Buffer {
  const rest = Buffer.byteLength(key) + Buffer.byteLength(value) + 3;
  let length = rest + String(rest).length;
  if (String(length).length !== String(rest).length) length = rest + String(length).length;
  return Buffer.from(`${length} ${key}=${value}\n`);
}

/** As much as fits; the whole of it is in the pax header then. */
function writeCut(block: Buffer, text: string, at: number): void {
  Buffer.from(text).copy(block, at, 0, NAME_BYTES);
}

function writeOctal(block: Buffer, value: number, at: number, width: number): void {
  block.write(`${value.toString(8).padStart(width - 1, "0")}\0`, at, "latin1");
}

function readString(block: Buffer, at: number, width: number): string {
  const end = block.indexOf(0, at);
  return block.toString("utf8", at, end < 0 || end > at + width ? at + width : end);
}

/** Octal text, or the binary form that GNU tar uses for large numbers. */
function readNumber(block: Buffer, at: number, width: number): number {
  if ((block[at] as number) & 0x80) {
    let value = 0;
    for (let i = at + 1; i < at + width; i += 1) value = value * 256 + (block[i] as number);
    if ((block[at] as number) !== 0x80 || !Number.isSafeInteger(value))
      throw new CaissonError("invalid", "the archive holds an impossible number");
    return value;
  }
  const text = block
    .toString("latin1", at, at + width)
    .replace(/[\0 ]+$/, "")
    .trim();
  if (text === "") return 0;
  if (!/^[0-7]+$/.test(text)) throw new CaissonError("invalid", "this is not a tar archive, or it is damaged");
  return Number.parseInt(text, 8);
}

function checksum(block: Buffer): number {
  let sum = 8 * 0x20;
  for (let i = 0; i < BLOCK_BYTES; i += 1) if (i < 148 || i >= 156) sum += block[i] as number;
  return sum;
}
