/** One entry of an archive. Names are relative. */
export interface TarFields {
  name: string;
  kind: "file" | "directory" | "link";
  mode: number;
  uid: number;
  gid: number;
  mtimeMs: number;
  size?: number;
  linkTarget?: string;
}

/** A small entry with its content. */
export type TarEntry = Omit<TarFields, "size" | "mtimeMs"> & { content?: string };

const BLOCK = 512;
/** Larger sizes do not fit the octal field. */
const SIZE_FIELD_MAX = 0o77777777777;
const typeFlags = { file: "0", link: "2", directory: "5", pax: "x" } as const;

/** A whole archive of small entries. */
export function tarOf(entries: readonly TarEntry[]): Buffer {
  const mtimeMs = Date.now();
  const parts = entries.flatMap(({ content = "", ...fields }) => {
    const bytes = Buffer.from(content);
    return [tarHeader({ ...fields, mtimeMs, size: bytes.length }), bytes, tarPadding(bytes.length)];
  });
  return Buffer.concat([...parts, tarEnd()]);
}

/** What comes before an entry's bytes; names that do not fit the old fields go into a pax header. */
export function tarHeader(fields: TarFields): Buffer {
  const name = fields.kind === "directory" ? `${fields.name}/` : fields.name;
  const { linkTarget = "", size = 0 } = fields;
  const records: string[] = [];
  if (Buffer.byteLength(name) > 100) records.push(paxRecord("path", name));
  if (Buffer.byteLength(linkTarget) > 100) records.push(paxRecord("linkpath", linkTarget));
  if (size > SIZE_FIELD_MAX) records.push(paxRecord("size", String(size)));
  const own = block({ ...fields, name, linkTarget, size });
  if (records.length === 0) return own;
  const content = Buffer.from(records.join(""));
  return Buffer.concat([
    block({ ...fields, name: "pax", kind: "pax", size: content.length, linkTarget: "" }),
    content,
    tarPadding(content.length),
    own,
  ]);
}

/** Fills an entry's last block. */
export function tarPadding(size: number): Buffer {
  return Buffer.alloc((BLOCK - (size % BLOCK)) % BLOCK);
}

export function tarEnd(): Buffer {
  return Buffer.alloc(2 * BLOCK);
}

/** The content of the first entry, when it is a plain file of at most `bytesMax`; null otherwise. The archive may say anything. */
export function firstFile(archive: Buffer, options: { bytesMax: number }): string | null {
  if (archive.length < BLOCK) return null;
  const type = archive[156];
  const size = Number.parseInt(archive.toString("latin1", 124, 136).replaceAll("\0", "").trim(), 8);
  if ((type !== 0 && type !== 0x30) || !Number.isInteger(size) || size > options.bytesMax || BLOCK + size > archive.length) return null;
  return archive.toString("utf8", BLOCK, BLOCK + size);
}

function block(fields: Omit<Required<TarFields>, "kind"> & { kind: keyof typeof typeFlags }): Buffer {
  const result = Buffer.alloc(BLOCK);
  const octal = (value: number, at: number, width: number) => result.write(`${value.toString(8).padStart(width - 1, "0")}\0`, at, "latin1");
  result.write(fields.name, 0, 100);
  octal(fields.mode, 100, 8);
  octal(fields.uid, 108, 8);
  octal(fields.gid, 116, 8);
  octal(Math.min(fields.size, SIZE_FIELD_MAX), 124, 12);
  octal(Math.max(0, Math.floor(fields.mtimeMs / 1000)), 136, 12);
  result.write(" ".repeat(8), 148, "latin1");
  result.write(typeFlags[fields.kind], 156, "latin1");
  result.write(fields.linkTarget, 157, 100);
  result.write("ustar\x0000", 257, "latin1");
  const sum = result.reduce((total, byte) => total + byte, 0);
  result.write(`${sum.toString(8).padStart(6, "0")}\0 `, 148, "latin1");
  return result;
}

/** `length key=value\n`, where the length counts its own digits too. */
function paxRecord(key: string, value: string): string {
  const rest = Buffer.byteLength(` ${key}=${value}\n`);
  let length = rest + String(rest).length;
  if (String(length).length > String(rest).length) length = rest + String(length).length;
  return `${length} ${key}=${value}\n`;
}
