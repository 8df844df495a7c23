/** Builds archives byte by byte, so a test controls exactly what is wrong with one. */
export interface HeaderFields {
  name: string | Buffer;
  type?: string;
  size?: number | Buffer;
  mode?: number;
  uid?: number;
  gid?: number;
  modified?: number | Buffer;
  link?: string | Buffer;
  prefix?: string;
  magic?: string;
  checksum?: number;
}

const BLOCK = 512;

export function header(fields: HeaderFields): Buffer {
  const block = Buffer.alloc(BLOCK);
  const octal = (value: number, width: number) => value.toString(8).padStart(width - 1, "0");
  Buffer.from(fields.name).copy(block, 0, 0, 100);
  block.write(octal(fields.mode ?? 0o644, 8), 100);
  block.write(octal(fields.uid ?? 0, 8), 108);
  block.write(octal(fields.gid ?? 0, 8), 116);
  if (Buffer.isBuffer(fields.size)) fields.size.copy(block, 124);
  else block.write(octal(fields.size ?? 0, 12), 124);
  if (Buffer.isBuffer(fields.modified)) fields.modified.copy(block, 136);
  else block.write(octal(fields.modified ?? 1_600_000_000, 12), 136);
  block.write(fields.type ?? "0", 156);
  Buffer.from(fields.link ?? "").copy(block, 157, 0, 100);
  block.write(fields.magic ?? "ustar\u000000", 257, "latin1");
  block.write(fields.prefix ?? "", 345);
  block.write("        ", 148);
  const sum = fields.checksum ?? block.reduce((total, byte) => total + byte, 0);
  block.write(`${sum.toString(8).padStart(6, "0")}\0 `, 148);
  return block;
}

export function padded(content: Uint8Array): Buffer {
  return Buffer.concat([content, Buffer.alloc((BLOCK - (content.length % BLOCK)) % BLOCK)]);
}

export function file(name: string | Buffer, content: string | Buffer = "content", fields: Partial<HeaderFields> = {}): Buffer {
  const bytes = Buffer.from(content);
  return Buffer.concat([header({ name, size: bytes.length, ...fields }), padded(bytes)]);
}

export const folder = (name: string, fields: Partial<HeaderFields> = {}): Buffer => header({ name, type: "5", mode: 0o755, ...fields });
export const symbolicLink = (name: string, link: string): Buffer => header({ name, link, type: "2", mode: 0o777 });
export const hardLink = (name: string, link: string): Buffer => header({ name, link, type: "1" });

export function pax(records: Record<string, string | Buffer>, type: "x" | "g" = "x"): Buffer {
  const body = Buffer.concat(Object.entries(records).map(([key, value]) => paxRecord(key, Buffer.from(value))));
  return rawPax(body, type);
}

export function rawPax(body: Buffer, type: "x" | "g" = "x"): Buffer {
  return Buffer.concat([header({ name: "pax", type, size: body.length }), padded(body)]);
}

function paxRecord(key: string, value: Buffer): Buffer {
  const rest = Buffer.concat([Buffer.from(` ${key}=`), value, Buffer.from("\n")]);
  let length = rest.length + 1;
  while (String(length).length + rest.length !== length) length = String(length).length + rest.length;
  return Buffer.concat([Buffer.from(String(length)), rest]);
}

export function gnuLong(type: "L" | "K", value: string | Buffer): Buffer {
  const bytes = Buffer.concat([Buffer.from(value), Buffer.from([0])]);
  return Buffer.concat([header({ name: "././@LongLink", type, size: bytes.length, magic: "ustar  \0" }), padded(bytes)]);
}

export const END = Buffer.alloc(2 * BLOCK);

export function archive(...parts: Buffer[]): Buffer {
  return Buffer.concat([...parts, END]);
}

/** Encodes a number in GNU's base-256 form, 12 bytes. */
export function base256(value: bigint): Buffer {
  const bytes = Buffer.alloc(12);
  let rest = BigInt.asUintN(96, value);
  for (let at = 11; at >= 0; at--) {
    bytes[at] = Number(rest & 0xffn);
    rest >>= 8n;
  }
  bytes[0] = (bytes[0] as number) | 0x80;
  return bytes;
}
