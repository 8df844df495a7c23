import { matchesTokens, matchSequence, type NameToken, nameTokens } from "../lib/wildcards.ts";

/** One line of a `.gitignore`, ready to be asked. */
export interface IgnorePattern {
  /** `!pattern`: takes back what an earlier line says. */
  isNegated: boolean;
  /** `pattern/`: folders alone. */
  isForFolders: boolean;
  /** What it stands for, any of them: names between slashes; `**` stands for any number of them. */
  ways: readonly (readonly Segment[])[];
}

/** Null names nothing: git would not understand it. */
type Segment = "**" | readonly NameToken[] | null;

/** What is longer than this is not a pattern. */
const PATTERN_CHARACTERS_MAX = 1000;
/** Of one file, as much is read; what comes after it hides nothing. */
export const IGNORE_BYTES_MAX = 1024 * 1024;
const PATTERNS_MAX = 10_000;
/** Stars before slashes, one after the other, make one pattern into several; beyond this many it names nothing. */
const WAYS_MAX = 16;

/** The patterns of a `.gitignore`, as git reads them. What git would not understand matches nothing. */
export function parseIgnorePatterns(text: string): IgnorePattern[] {
  const patterns: IgnorePattern[] = [];
  for (let from = text.startsWith("\ufeff") ? 1 : 0; from < text.length && patterns.length < PATTERNS_MAX; ) {
    const newline = text.indexOf("\n", from);
    const end = newline < 0 ? text.length : newline;
    // Too long to be a pattern once its end is trimmed: found before anything reads it.
    const line = endTrimmed(text, from, end);
    const pattern = line === null ? null : parsePattern(asBytes(line));
    if (pattern !== null) patterns.push(pattern);
    from = end + 1;
  }
  return patterns;
}

/** A line without its end that does not count: a carriage return, and spaces unless the first of them is escaped. */
function endTrimmed(text: string, from: number, newline: number): string | null {
  const end = newline > from && text[newline - 1] === "\r" ? newline - 1 : newline;
  let cut = end;
  while (cut > from && text[cut - 1] === " ") cut -= 1;
  if (cut - from > PATTERN_CHARACTERS_MAX) return null;
  let backslashes = 0;
  while (cut - backslashes > from && text[cut - backslashes - 1] === "\\") backslashes += 1;
  return text.slice(from, cut < end && backslashes % 2 === 1 ? cut + 1 : cut);
}

/** It is a slash all the same. */
const escapedSlash = /((?:^|[^\\])(?:\\\\)*)\\\//g;

function parsePattern(line: string): IgnorePattern | null {
  let text = line;
  if (text === "" || text.startsWith("#") || text.length > PATTERN_CHARACTERS_MAX) return null;
  const isNegated = text.startsWith("!");
  if (isNegated) text = text.slice(1);
  const isForFolders = text.endsWith("/");
  if (isForFolders) text = text.slice(0, -1);
  if (text === "") return null;
  // A slash anywhere but at the end binds a pattern to the folder of its file.
  if (!text.includes("/")) return { isNegated, isForFolders, ways: [segmentsOf(`**/${text}`)] };
  const bound = text.replace(/^\//, "");
  const plain = /^[^*?[\\]*/.exec(bound)?.[0] ?? "";
  const ways = waysOf(plain, bound.slice(plain.length));
  return ways.length > WAYS_MAX ? null : { isNegated, isForFolders, ways };
}

/**
 * Git compares what is before the first wildcard by itself, and forgets it: so the stars of `x/a**` are at the
 * beginning of what is left, and stand for slashes as well; those of `a**` before a slash, too.
 */
function waysOf(plain: string, rest: string, depth = 0): Segment[][] {
  if (depth > WAYS_MAX) return [];
  const stars = plain === "" || plain.endsWith("/") ? null : /^\*{2,}(?:(\\?)\/(.*))?$/s.exec(rest);
  if (stars === null) return [segmentsOf(plain + rest)];
  const [, backslash, after] = stars;
  if (after === undefined) return [segmentsOf(`${plain}*`), segmentsOf(`${plain}*/**`)];
  // Where the slash is escaped, there has to be one.
  return [...(backslash === "" ? waysOf(plain, after, depth + 1) : []), segmentsOf(`${plain}*/**/${after}`)];
}

function segmentsOf(text: string): Segment[] {
  const segments = text.replaceAll(escapedSlash, "$1/").split("/");
  const whole = segments.map((segment): Segment => (/^\*{2,}$/.test(segment) ? "**" : nameTokens(segment)));
  // `a/**` is all that is in a, and not a itself.
  return whole.at(-1) === "**" ? [...whole, [null]] : whole;
}

/** A path as patterns see it: the characters of its names. */
export type PathNames = readonly (readonly string[])[];

/** Git compares bytes, so that `?` is a part of a letter beyond ASCII: one character for each byte, here as there. */
export const namesOf = (path: string): PathNames =>
  asBytes(path)
    .split("/")
    .map((name) => [...name]);

const asBytes = (text: string) => Buffer.from(text, "utf8").toString("latin1");

/**
 * Whether a pattern names this path, which is relative to the folder of its file. Of the folders above it nothing is
 * said.
 */
export function matchesPattern({ ways, isForFolders }: IgnorePattern, names: PathNames, { isFolder }: { isFolder: boolean }): boolean {
  if (isForFolders && !isFolder) return false;
  return ways.some((segments) => matchSequence(segments, names, { isAny: isStars, fits }));
}

const isStars = (segment: Segment) => segment === "**";
const fits = (segment: Segment, name: readonly string[]) => segment !== null && segment !== "**" && matchesTokens(segment, name);
