/** One entry of a handmade archive; tests may give it false values. */
export interface FixtureEntry {
  name: string;
  type?: string;
  content?: string | Uint8Array;
  link?: string;
  mode?: number;
  uid?: number;
  gid?: number;
  /** The size in the header, regardless of the content. */
  size?: number;
  pax?: Record<string, string>;
}

/** Writes archives for tests, including hostile ones: names, links and sizes are not checked. */
export function tarOf(entries: readonly FixtureEntry[], options: { end?: boolean } = {}): Buffer {
  const parts = entries.flatMap((entry) => [...(entry.pax === undefined ? [] : [paxOf(entry.pax)]), one(entry)]);
  return Buffer.concat([...parts, ...(options.end === false ? [] : [Buffer.alloc(1024)])]);
}

function one(entry: FixtureEntry): Buffer {
  const content = Buffer.from(entry.content ?? "");
  const header = Buffer.alloc(512);
  const octal = (value: number, at: number, length: number) => header.write(value.toString(8).padStart(length - 1, "0"), at, "latin1");
  header.write(entry.name.slice(0, 100), 0, "latin1");
  octal(entry.mode ?? (entry.type === "5" ? 0o755 : 0o644), 100, 8);
  octal(entry.uid ?? 0, 108, 8);
  octal(entry.gid ?? 0, 116, 8);
  octal(entry.size ?? content.length, 124, 12);
  octal(1_700_000_000, 136, 12);
  header.write(entry.type ?? "0", 156, "latin1");
  header.write((entry.link ?? "").slice(0, 100), 157, "latin1");
  header.write("ustar\x0000", 257, "latin1");
  header.fill(32, 148, 156);
  const sum = header.reduce((total, byte) => total + byte, 0);
  header.write(`${sum.toString(8).padStart(6, "0")}\0 `, 148, "latin1");
  return Buffer.concat([header, content, Buffer.alloc((512 - (content.length % 512)) % 512)]);
}

function paxOf(records: Record<string, string>): Buffer {
  const lines = Object.entries(records).map(([key, value]) => {
    const rest = Buffer.byteLength(` ${key}=${value}\n`, "latin1");
    let length = rest + 1;
    while (String(length).length + rest !== length) length += 1;
    return Buffer.from(`${length} ${key}=${value}\n`, "latin1");
  });
  return one({ name: "pax", type: "x", content: Buffer.concat(lines) });
}
