import { ignoring } from "../../../../../src/lib/failures.ts";

/** A changed file before and after, as text; null for a side that does not exist. */
export interface FileSides {
  before: string | null;
  after: string | null;
  /** Whether a side is not text, or is too long to show. */
  isOther: boolean;
}

export const TEXT_BYTES_MAX = 1024 * 1024;
const BLOCK = 512;

interface Side {
  digest: string;
  kind: "file" | "link";
}

/** Reads one file's changes from the archive that `sessions.changes` returns with `base`. */
export function readSides(archive: Uint8Array, path: string): FileSides {
  const entries = new Map(tarEntries(archive));
  const manifest = JSON.parse(new TextDecoder().decode(entries.get("manifest.json") ?? new Uint8Array())) as {
    files: { path: string; before: Side | null; after: Side | null }[];
  };
  const file = manifest.files.find((each) => each.path === path);
  const textOf = (side: Side | null | undefined): string | null | undefined => {
    if (side === null || side === undefined) return null;
    const bytes = entries.get(`content/${side.digest}`);
    return bytes === undefined || bytes.length > TEXT_BYTES_MAX ? undefined : decodeText(bytes);
  };
  const [before, after] = [textOf(file?.before), textOf(file?.after)];
  return { before: before ?? null, after: after ?? null, isOther: before === undefined || after === undefined };
}

/** Returns undefined if the bytes are not text. */
export function decodeText(bytes: Uint8Array): string | undefined {
  if (bytes.subarray(0, 8_000).includes(0)) return undefined;
  return ignoring("it is not text", () => new TextDecoder("utf-8", { fatal: true }).decode(bytes));
}

function* tarEntries(archive: Uint8Array): Generator<[string, Uint8Array]> {
  const field = (at: number, length: number) => new TextDecoder().decode(archive.subarray(at, at + length)).replace(/\0.*$/s, "");
  for (let at = 0; at + BLOCK <= archive.length && archive[at] !== 0; ) {
    const name = field(at, 100);
    const size = Number.parseInt(field(at + 124, 12).trim(), 8);
    if (!Number.isInteger(size) || size < 0) return;
    yield [name, archive.subarray(at + BLOCK, at + BLOCK + size)];
    at += BLOCK + Math.ceil(size / BLOCK) * BLOCK;
  }
}
