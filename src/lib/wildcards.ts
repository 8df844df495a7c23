/**
 * The one matcher of wildcards. Patterns come from callers, models, repositories and other stations, so its cost has a
 * bound that no pattern exceeds: parts times items. `takes` names the items that a part for any number of them may
 * stand for, default all.
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
      // The last such part takes one more.
      againItem += 1;
      part = againPart;
      item = againItem;
    } else return false;
  }
  while (part < parts.length && isAny(parts[part] as Part)) part += 1;
  return part === parts.length;
}

const isStar = (character: string) => character === "*";

/** Whether a pattern covers a whole text. `*` stands for any characters; everything else stands for itself. */
export function matchesStars(pattern: string, text: string): boolean {
  return matchSequence(pattern, text, { isAny: isStar, fits: (part, character) => part === character });
}

/** As `matchesStars`; `?` stands for one character besides. */
export function matchesWildcards(pattern: string, text: string): boolean {
  return matchSequence(pattern, text, { isAny: isStar, fits: (part, character) => part === "?" || part === character });
}

/** One part of a name's pattern: null for any characters, one character that stands for itself, or a test of one. */
export type NameToken = null | string | ((character: string) => boolean);

/** Whether the tokens of a name's pattern cover a name. */
export function matchesTokens(tokens: readonly NameToken[], name: ArrayLike<string>): boolean {
  return matchSequence(tokens, name, { isAny: isAnything, fits: fitsToken });
}

const isAnything = (token: NameToken) => token === null;
const fitsToken = (token: NameToken, character: string) =>
  typeof token === "function" ? token(character) : token !== null && token === character;

/** The pattern of a name: `*`, `?`, `[a-z]`, `[!a-z]`, `\` before what stands for itself. Null for a malformed one. */
export function nameTokens(pattern: string): NameToken[] | null {
  const tokens: NameToken[] = [];
  const characters = [...pattern];
  // Classes such as [[:digit:]] are not known here; what they name is shown rather than hidden.
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

/** `[a-z]`, `[!a-z]`, `[]x]`; null when it is not closed. */
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
