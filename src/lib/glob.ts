import { matchesTokens, matchSequence, type NameToken, nameTokens } from "./wildcards.ts";

/** `{a,b}{c,d}…` expands to a product of patterns; a pattern that expands to more than this is rejected. */
const ALTERNATIVES_MAX = 64;
/** Longer patterns are rejected: for each brace we scan to the end of the pattern. */
const PATTERN_CHARACTERS_MAX = 1000;

type Segment = "**" | { tokens: readonly NameToken[]; takesDots: boolean };

/**
 * Compiles a glob to a test of paths: `*` and `?` within a name, `[a-z]`, `{a,b}`, and `**` for any number of folders.
 * As in a shell, a name with a leading dot matches only if the pattern has that dot. Returns null if the pattern is
 * malformed, expands to more than 64 others or has more than 1,000 characters. The cost of a match is at most
 * proportional to the pattern's length times the path's.
 */
export function compileGlob(pattern: string): ((path: string) => boolean) | null {
  const plain = pattern.length > PATTERN_CHARACTERS_MAX ? null : expandBraces(pattern);
  if (plain === null) return null;
  const ways: (readonly Segment[])[] = [];
  for (const each of plain) {
    const segments: Segment[] = [];
    for (const text of each.split("/")) {
      if (text === "**") {
        segments.push("**");
        continue;
      }
      const tokens = nameTokens(text);
      if (tokens === null) return null;
      segments.push({ tokens, takesDots: text.startsWith(".") });
    }
    // `a/**` matches everything in a, but not a itself.
    ways.push(segments.at(-1) === "**" ? [...segments, { tokens: [null], takesDots: false }] : segments);
  }
  return (path) => {
    const names = path.split("/").map((name) => [...name]);
    return ways.some((segments) => matchSequence(segments, names, { isAny: (segment) => segment === "**", fits, takes: isVisible }));
  };
}

/** `**` does not match hidden folders: the pattern must match each of them with a separate segment. */
const isVisible = (name: readonly string[]) => name[0] !== ".";

function fits(segment: Segment, name: readonly string[]): boolean {
  if (segment === "**" || (!isVisible(name) && !segment.takesDots)) return false;
  return matchesTokens(segment.tokens, name);
}

/**
 * Expands a pattern with braces. Returns null for more than `ALTERNATIVES_MAX` results. Braces without a comma are
 * text.
 */
function expandBraces(pattern: string): string[] | null {
  let done: string[] = [""];
  for (let at = 0; at < pattern.length; ) {
    const group = pattern[at] === "{" ? groupAt(pattern, at) : null;
    if (group === null) {
      // An escaped character is never a brace.
      const length = pattern[at] === "\\" && at + 1 < pattern.length ? 2 : 1;
      const literal = pattern.slice(at, at + length);
      // Cheap: a pattern with many groups is rejected below before `done` grows large.
      done = done.map((each) => each + literal);
      at += length;
      continue;
    }
    const parts: string[] = [];
    for (const part of group.parts) {
      const expanded = expandBraces(part);
      if (expanded === null) return null;
      parts.push(...expanded);
      if (parts.length > ALTERNATIVES_MAX) return null;
    }
    if (done.length * parts.length > ALTERNATIVES_MAX) return null;
    done = done.flatMap((each) => parts.map((part) => each + part));
    at = group.end + 1;
  }
  return done;
}

function groupAt(pattern: string, start: number): { parts: string[]; end: number } | null {
  const parts: string[] = [];
  let depth = 0;
  let from = start + 1;
  for (let at = start + 1; at < pattern.length; at += 1) {
    const character = pattern[at];
    if (character === "\\") at += 1;
    else if (character === "{") depth += 1;
    else if (character === "}" && depth > 0) depth -= 1;
    else if (character === "," && depth === 0) {
      parts.push(pattern.slice(from, at));
      from = at + 1;
    } else if (character === "}") {
      parts.push(pattern.slice(from, at));
      return parts.length > 1 ? { parts, end: at } : null;
    }
  }
  return null;
}
