import { matchesTokens, matchSequence, type NameToken, nameTokens } from "../lib/wildcards.ts";

/** One parsed line of a `.gitignore`. */
export interface IgnorePattern {
  /** `!pattern`: reverses an earlier line. */
  isNegated: boolean;
  /** `pattern/`: matches folders only. */
  isForFolders: boolean;
  /** The alternatives to match: names between slashes, where `**` matches any number of names. */
  ways: readonly (readonly Segment[])[];
}

/** Null matches nothing, because git would not understand it. */
type Segment = "**" | readonly NameToken[] | null;

/** Longer lines are not patterns. */
const PATTERN_CHARACTERS_MAX = 1000;
/** How much of one file is read. Patterns beyond this limit have no effect. */
export const IGNORE_BYTES_MAX = 1024 * 1024;
const PATTERNS_MAX = 10_000;
/**
 * Each star before a slash multiplies a pattern into several. A pattern with more alternatives than this matches
 * nothing.
 */
const WAYS_MAX = 16;

/** Parses the patterns of a `.gitignore` as git does. Patterns that git would not understand match nothing. */
export function parseIgnorePatterns(text: string): IgnorePattern[] {
  const patterns: IgnorePattern[] = [];
  for (let from = text.startsWith("\ufeff") ? 1 : 0; from < text.length && patterns.length < PATTERNS_MAX; ) {
    const newline = text.indexOf("\n", from);
    const end = newline < 0 ? text.length : newline;
    // Checks the trimmed length first, so an overlong line is never parsed.
    const line = endTrimmed(text, from, end);
    const pattern = line === null ? null : parsePattern(asBytes(line));
    if (pattern !== null) patterns.push(pattern);
    from = end + 1;
  }
  return patterns;
}

/**
 * Drops the insignificant end of a line: a carriage return, and spaces unless the first of them is escaped. Returns
 * null if the rest is too long for a pattern.
 */
function endTrimmed(text: string, from: number, newline: number): string | null {
  const end = newline > from && text[newline - 1] === "\r" ? newline - 1 : newline;
  let cut = end;
  while (cut > from && text[cut - 1] === " ") cut -= 1;
  if (cut - from > PATTERN_CHARACTERS_MAX) return null;
  let backslashes = 0;
  while (cut - backslashes > from && text[cut - backslashes - 1] === "\\") backslashes += 1;
  return text.slice(from, cut < end && backslashes % 2 === 1 ? cut + 1 : cut);
}

/** An escaped slash is still a slash. */
const escapedSlash = /((?:^|[^\\])(?:\\\\)*)\\\//g;
/** Before an escaped slash, `**` matches at least one name. */
const starsBeforeEscapedSlash = /(?<=^|\/)\*{2,}\\\//g;

function parsePattern(line: string): IgnorePattern | null {
  let text = line;
  if (text === "" || text.startsWith("#") || text.length > PATTERN_CHARACTERS_MAX) return null;
  const isNegated = text.startsWith("!");
  if (isNegated) text = text.slice(1);
  const isForFolders = text.endsWith("/");
  if (isForFolders) text = text.slice(0, -1);
  if (text === "") return null;
  // A slash other than at the end binds the pattern to the folder of its file.
  if (!text.includes("/")) return { isNegated, isForFolders, ways: [segmentsOf(`**/${text}`)] };
  const bound = text.replace(/^\//, "");
  const plain = /^[^*?[\\]*/.exec(bound)?.[0] ?? "";
  const ways = waysOf(plain, bound.slice(plain.length));
  return ways.length > WAYS_MAX ? null : { isNegated, isForFolders, ways };
}

/**
 * Splits a pattern into alternatives as git does. Git compares the part before the first wildcard separately and then
 * drops it. So the stars of `x/a**` are at the start of the rest and match slashes as well, as do those of `a**` before
 * a slash.
 */
function waysOf(plain: string, rest: string, depth = 0): Segment[][] {
  if (depth > WAYS_MAX) return [];
  const stars = plain === "" || plain.endsWith("/") ? null : /^\*{2,}(?:(\\?)\/(.*))?$/s.exec(rest);
  if (stars === null) return [segmentsOf(plain + rest)];
  const [, backslash, after] = stars;
  if (after === undefined) return [segmentsOf(`${plain}*`), segmentsOf(`${plain}*/**`)];
  // An escaped slash must occur in the path.
  return [...(backslash === "" ? waysOf(plain, after, depth + 1) : []), segmentsOf(`${plain}*/**/${after}`)];
}

function segmentsOf(text: string): Segment[] {
  const segments = text.replaceAll(starsBeforeEscapedSlash, "*/**/").replaceAll(escapedSlash, "$1/").split("/");
  const whole = segments.map((segment): Segment => (/^\*{2,}$/.test(segment) ? "**" : nameTokens(segment)));
  // `a/**` matches everything in a, but not a itself.
  return whole.at(-1) === "**" ? [...whole, [null]] : whole;
}

/** A path as patterns see it: the characters of each name. */
export type PathNames = readonly (readonly string[])[];

/** Git compares bytes, so `?` matches only part of a non-ASCII letter. We use one character per byte on both sides. */
export const namesOf = (path: string): PathNames =>
  asBytes(path)
    .split("/")
    .map((name) => [...name]);

const asBytes = (text: string) => Buffer.from(text, "utf8").toString("latin1");

/**
 * Returns whether a pattern matches this path, relative to the folder of its file. Does not check the folders above it.
 */
export function matchesPattern({ ways, isForFolders }: IgnorePattern, names: PathNames, { isFolder }: { isFolder: boolean }): boolean {
  if (isForFolders && !isFolder) return false;
  return ways.some((segments) => matchSequence(segments, names, { isAny: isStars, fits }));
}

const isStars = (segment: Segment) => segment === "**";
const fits = (segment: Segment, name: readonly string[]) => segment !== null && segment !== "**" && matchesTokens(segment, name);
