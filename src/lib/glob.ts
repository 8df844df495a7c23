import { matchesTokens, matchSequence, type NameToken, nameTokens } from "./wildcards.ts";

/** `{a,b}{c,d}…` stands for a product of patterns; more than this many are refused. */
const ALTERNATIVES_MAX = 64;
/** Longer ones are refused: each brace is looked for to the end of the pattern. */
const PATTERN_CHARACTERS_MAX = 1000;

type Segment = "**" | { tokens: readonly NameToken[]; takesDots: boolean };

/**
 * A test of paths by a glob: `*` and `?` within a name, `[a-z]`, `{a,b}`, and `**` for any number of folders. As in a
 * shell, a name with a leading dot is meant only where the pattern has that dot. Null for a malformed pattern, or one
 * that stands for more than 64 others or has more than 1,000 characters. Its cost grows with the pattern times the
 * path, whatever the pattern is.
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
    // `a/**` is all that is in a, and not a itself.
    ways.push(segments.at(-1) === "**" ? [...segments, { tokens: [null], takesDots: false }] : segments);
  }
  return (path) => {
    const names = path.split("/").map((name) => [...name]);
    return ways.some((segments) => matchSequence(segments, names, { isAny: (segment) => segment === "**", fits, takes: isVisible }));
  };
}

/** `**` matches no hidden folder: each of those needs its own segment. */
const isVisible = (name: readonly string[]) => name[0] !== ".";

function fits(segment: Segment, name: readonly string[]): boolean {
  if (segment === "**" || (!isVisible(name) && !segment.takesDots)) return false;
  return matchesTokens(segment.tokens, name);
}

/** What a pattern with braces stands for; null for more than `ALTERNATIVES_MAX`. Braces without a comma are text. */
function expandBraces(pattern: string): string[] | null {
  let done: string[] = [""];
  for (let at = 0; at < pattern.length; ) {
    const group = pattern[at] === "{" ? groupAt(pattern, at) : null;
    if (group === null) {
      // An escape keeps the character after it from being a brace.
      const length = pattern[at] === "\\" && at + 1 < pattern.length ? 2 : 1;
      const literal = pattern.slice(at, at + length);
      // A pattern of many groups is refused below before this costs anything.
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
