/**
 * The only wildcard matcher. Patterns come from callers, models, repositories and other stations, so the cost is
 * bounded for every pattern: parts times items. `takes` limits which items a wildcard part may consume; default all.
 */
export function matchSequence<Part, Item>(
  parts: ArrayLike<Part>,
  items: ArrayLike<Item>,
  { isAny, fits, takes }: { isAny: (part: Part) => boolean; fits: (part: Part, item: Item) => boolean; takes?: (item: Item) => boolean },
): boolean {
  let part = 0;
  let item = 0;
  let againPart = -1;
  let againItem = 0;
  while (item < items.length) {
    if (part < parts.length && isAny(parts[part] as Part)) {
      part += 1;
      againPart = part;
      againItem = item;
    } else if (part < parts.length && fits(parts[part] as Part, items[item] as Item)) {
      part += 1;
      item += 1;
    } else if (againPart >= 0 && (takes === undefined || takes(items[againItem] as Item))) {
      // The last wildcard part consumes one more item.
      againItem += 1;
      part = againPart;
      item = againItem;
    } else return false;
  }
  while (part < parts.length && isAny(parts[part] as Part)) part += 1;
  return part === parts.length;
}

const isStar = (character: string) => character === "*";

/** Returns whether a pattern matches a whole text. `*` matches any characters; everything else is literal. */
export function matchesStars(pattern: string, text: string): boolean {
  return matchSequence(pattern, text, { isAny: isStar, fits: (part, character) => part === character });
}

/** Like `matchesStars`, but `?` matches any one character. */
export function matchesWildcards(pattern: string, text: string): boolean {
  return matchSequence(pattern, text, { isAny: isStar, fits: (part, character) => part === "?" || part === character });
}

/** One part of a name pattern: null for any characters, a literal character, or a test of one character. */
export type NameToken = null | string | ((character: string) => boolean);

/** Returns whether the tokens of a name pattern match a name. */
export function matchesTokens(tokens: readonly NameToken[], name: ArrayLike<string>): boolean {
  return matchSequence(tokens, name, { isAny: isAnything, fits: fitsToken });
}

const isAnything = (token: NameToken) => token === null;
const fitsToken = (token: NameToken, character: string) =>
  typeof token === "function" ? token(character) : token !== null && token === character;

/**
 * Parses a name pattern: `*`, `?`, `[a-z]`, `[!a-z]`, and `\` before a literal character. Returns null if it is
 * malformed.
 */
export function nameTokens(pattern: string): NameToken[] | null {
  const tokens: NameToken[] = [];
  const characters = [...pattern];
  // Classes such as [[:digit:]] are not supported; names that they would match are shown rather than hidden.
  const hasClasses = pattern.includes("[:");
  for (let at = 0; at < characters.length; at += 1) {
    const character = characters[at] as string;
    if (character === "*") tokens.push(null);
    else if (character === "?") tokens.push(() => true);
    else if (character === "[") {
      const found = hasClasses ? null : bracketAt(characters, at);
      if (found === null) return null;
      tokens.push(found.token);
      at = found.end;
    } else {
      if (character === "\\") at += 1;
      const literal = characters[at];
      // A backslash at the end escapes nothing.
      if (literal === undefined) return null;
      tokens.push(literal);
    }
  }
  return tokens;
}

/** Parses `[a-z]`, `[!a-z]` or `[]x]`. Returns null if it is not closed. */
function bracketAt(characters: readonly string[], start: number): { token: NameToken; end: number } | null {
  let at = start + 1;
  const isNegated = characters[at] === "!" || characters[at] === "^";
  if (isNegated) at += 1;
  const ranges: [string, string][] = [];
  for (let isFirst = true; ; isFirst = false) {
    if (characters[at] === undefined) return null;
    if (characters[at] === "]" && !isFirst) break;
    if (characters[at] === "\\") at += 1;
    const from = characters[at];
    if (from === undefined) return null;
    let to = from;
    if (characters[at + 1] === "-" && characters[at + 2] !== undefined && characters[at + 2] !== "]") {
      at += characters[at + 2] === "\\" ? 3 : 2;
      to = characters[at] ?? from;
    }
    ranges.push([from, to]);
    at += 1;
  }
  return { token: (character) => ranges.some(([from, to]) => from <= character && character <= to) !== isNegated, end: at };
}
