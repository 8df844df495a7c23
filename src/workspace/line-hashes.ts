/**
 * The hashes of a text's lines, sorted. Shared lines of two texts are then counted in one pass, however often a text is
 * compared.
 */
export type LineHashes = Uint32Array;

const NEWLINE = 0x0a;

/** Returns an FNV-1a hash per line. A collision only makes files look more alike than they are, which is harmless. */
export function hashLines(content: Buffer): LineHashes {
  const hashes: number[] = [];
  let hash = 0x811c9dc5;
  for (let at = 0; at < content.length; at++) {
    const byte = content[at] as number;
    if (byte === NEWLINE) {
      hashes.push(hash >>> 0);
      hash = 0x811c9dc5;
    } else hash = Math.imul(hash ^ byte, 0x01000193);
  }
  hashes.push(hash >>> 0);
  return Uint32Array.from(hashes).sort();
}

/** Returns the share of lines that two texts have in common, from 0 to 1. */
export function similarity(a: LineHashes, b: LineHashes): number {
  let shared = 0;
  for (let i = 0, j = 0; i < a.length && j < b.length; ) {
    const difference = (a[i] as number) - (b[j] as number);
    if (difference === 0) shared += 1;
    if (difference <= 0) i += 1;
    if (difference >= 0) j += 1;
  }
  return shared / Math.max(a.length, b.length, 1);
}
