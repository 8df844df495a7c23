const BLOCK = 512;

export interface TarEntry {
  name: string;
  /**
   * The ustar type flag: 0 file, 1 hard link, 2 symbolic link, 3 character device, 4 block device, 5 folder, 6 FIFO.
   */
  type?: "0" | "1" | "2" | "3" | "4" | "5" | "6" | "x" | "g" | "L" | "K";
  mode?: number;
  linkTarget?: string;
  content?: Uint8Array;
  /** The size in the header, if it should differ from the content's. */
  sizeInHeader?: number;
}

/** Writes a ustar archive exactly as requested, including tricks. */
export function tarArchive(entries: readonly TarEntry[]): Buffer {
  return Buffer.concat([...entries.flatMap(entryBlocks), Buffer.alloc(2 * BLOCK)]);
}

/** Returns a pax header for the next entry, with records of the form `length key=value\n`. */
export function paxHeader(records: Record<string, string>): TarEntry {
  return { name: "pax", type: "x", content: Buffer.concat(Object.entries(records).map(([key, value]) => paxRecord(key, value))) };
}

function paxRecord(key: string, value: string): Buffer {
  const rest = Buffer.byteLength(` ${key}=${value}\n`);
  let length = rest;
  while (length !== rest + String(length).length) length = rest + String(length).length;
  return Buffer.from(`${length} ${key}=${value}\n`);
}

function entryBlocks(entry: TarEntry): Buffer[] {
  const content = Buffer.from(entry.content ?? []);
  const header = Buffer.alloc(BLOCK);
  header.write(entry.name, 0, 100);
  header.write(octal(entry.mode ?? (entry.type === "5" ? 0o755 : 0o644), 8), 100);
  header.write(octal(0, 8), 108);
  header.write(octal(0, 8), 116);
  header.write(octal(entry.sizeInHeader ?? content.length, 12), 124);
  header.write(octal(1_700_000_000, 12), 136);
  header.write("        ", 148);
  header.write(entry.type ?? "0", 156);
  header.write(entry.linkTarget ?? "", 157, 100);
  header.write("ustar\0", 257);
  header.write("00", 263);
  header.write(octal(8, 8), 329);
  header.write(octal(1, 8), 337);
  const sum = header.reduce((total, byte) => total + byte, 0);
  header.write(`${sum.toString(8).padStart(6, "0")}\0 `, 148);
  const padding = Buffer.alloc((BLOCK - (content.length % BLOCK)) % BLOCK);
  return [header, content, padding];
}

function octal(value: number, width: number): string {
  return `${value.toString(8).padStart(width - 1, "0")}\0`;
}
