export const BLOCK_BYTES = 512;

export type TarKind = "file" | "directory" | "link" | "hardLink";

/** The header of one entry. `name` and `linkTarget` come straight from the archive and are hostile until checked. */
export interface TarHeader {
  kind: TarKind;
  name: string;
  mode: number;
  sizeBytes: number;
  modifiedMs: number;
  linkTarget: string;
  /** Written if present; never read, because an archive's owners are not trusted. */
  owner?: { uid: number; gid: number };
}

const NAME_BYTES = 100;
const OCTAL_SIZE_MAX = 0o77777777777;

/** Encodes a ustar block, preceded by a pax block if the name, the link's target or the size needs one. */
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

/** Returns zeros up to the next block. */
export function padding(bytes: number): Buffer {
  return Buffer.alloc((BLOCK_BYTES - (bytes % BLOCK_BYTES)) % BLOCK_BYTES);
}

export const tarEnd = Buffer.alloc(2 * BLOCK_BYTES);

const typeFlags: Readonly<Record<TarKind, string>> = { file: "0", hardLink: "1", link: "2", directory: "5" };

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

/** Writes as much as fits; then the pax header contains the whole text. */
function writeCut(block: Buffer, text: string, at: number): void {
  Buffer.from(text).copy(block, at, 0, NAME_BYTES);
}

function writeOctal(block: Buffer, value: number, at: number, width: number): void {
  block.write(`${value.toString(8).padStart(width - 1, "0")}\0`, at, "latin1");
}

function checksum(block: Buffer): number {
  let sum = 8 * 0x20;
  for (let i = 0; i < BLOCK_BYTES; i += 1) if (i < 148 || i >= 156) sum += block[i] as number;
  return sum;
}
