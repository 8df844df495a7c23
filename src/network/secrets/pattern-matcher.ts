/**
 * Searches for many patterns at once (the algorithm of Wu and Manber). It skips bytes that cannot be part of any
 * pattern, so that large bodies cost little.
 */
export interface PatternMatcher {
  readonly longest: number;
  readonly shortest: number;
  /**
   * Returns the first complete match that begins at `from` or later and before `until`. If several begin at the same
   * place, returns the longest.
   */
  find(bytes: Buffer, from: number, until: number): PatternMatch | null;
  /**
   * Returns the earliest position, not before `from`, of a pattern that the end of the bytes cuts off. Returns the end
   * of the bytes if there is no such pattern.
   */
  findUnfinished(bytes: Buffer, from: number): number;
}

export interface PatternMatch {
  at: number;
  length: number;
  /** The index of the pattern, in the given order. */
  index: number;
}

/** How many bytes of each pattern determine a jump. More would fill the table and shorten the jumps. */
const WINDOW_BYTES_MAX = 64;
const PAIRS = 65_536;

/** Returns null if there are no patterns. Each pattern must have at least two bytes. */
export function createPatternMatcher(patterns: readonly Buffer[]): PatternMatcher | null {
  if (patterns.length === 0) return null;
  const lengths = patterns.map((pattern) => pattern.length);
  const shortest = Math.min(...lengths);
  const longest = Math.max(...lengths);
  if (shortest < 2) throw new RangeError("a pattern must have at least two bytes");
  const window = Math.min(shortest, WINDOW_BYTES_MAX);
  const longestFirst = patterns.map((bytes, index) => ({ bytes, index })).sort((left, right) => right.bytes.length - left.bytes.length);
  const { jumps, byLastPair } = tables(longestFirst, window);
  const byFirstByte = Array.from({ length: 256 }, (_, first) => longestFirst.filter(({ bytes }) => bytes[0] === first));
  const begins = Uint8Array.from(byFirstByte, (some) => (some.length > 0 ? 1 : 0));

  return {
    longest,
    shortest,
    find(bytes, from, until) {
      const lastEnd = Math.min(bytes.length, until + window - 1);
      for (let end = from + window; end <= lastEnd; ) {
        const pair = ((bytes[end - 2] as number) << 8) | (bytes[end - 1] as number);
        const jump = jumps[pair] as number;
        if (jump > 0) {
          end += jump;
          continue;
        }
        const at = end - window;
        for (const pattern of byLastPair.get(pair) ?? []) {
          if (startsWith(bytes, at, pattern.bytes)) return { at, length: pattern.bytes.length, index: pattern.index };
        }
        end += 1;
      }
      return null;
    },
    findUnfinished(bytes, from) {
      for (let at = Math.max(from, bytes.length - longest + 1); at < bytes.length; at++) {
        const first = bytes[at] as number;
        if (begins[first] === 0) continue;
        const there = bytes.length - at;
        for (const pattern of byFirstByte[first] ?? []) {
          if (pattern.bytes.length <= there) break;
          if (bytes.compare(pattern.bytes, 0, there, at, bytes.length) === 0) return at;
        }
      }
      return bytes.length;
    },
  };
}

interface Pattern {
  bytes: Buffer;
  index: number;
}

/**
 * Returns, for each pair of bytes, how far the window can move if it ends in that pair, and the patterns whose window
 * ends in it.
 */
function tables(patterns: readonly Pattern[], window: number): { jumps: Uint8Array; byLastPair: Map<number, Pattern[]> } {
  const jumps = new Uint8Array(PAIRS).fill(window - 1);
  const byLastPair = new Map<number, Pattern[]>();
  for (const pattern of patterns) {
    for (let end = 2; end <= window; end++) {
      const pair = pattern.bytes.readUInt16BE(end - 2);
      jumps[pair] = Math.min(jumps[pair] as number, window - end);
    }
    const last = pattern.bytes.readUInt16BE(window - 2);
    byLastPair.set(last, [...(byLastPair.get(last) ?? []), pattern]);
  }
  return { jumps, byLastPair };
}

function startsWith(bytes: Buffer, at: number, pattern: Buffer): boolean {
  return bytes.length - at >= pattern.length && bytes.compare(pattern, 0, pattern.length, at, at + pattern.length) === 0;
}
