/** One line of a `.gitignore`, ready to be asked. */
export interface IgnorePattern {
  /** `!pattern`: takes back what an earlier line says. */
  isNegated: boolean;
  /** `pattern/`: folders alone. */
  isForFolders: boolean;
  /** What it stands for, any of them: names between slashes; `**` stands for any number of them. */
  ways: readonly (readonly string[])[];
}

/** Longer lines are nobody's pattern. */
const PATTERN_CHARACTERS_MAX = 1000;

/** The patterns of a `.gitignore`, as git reads them. What git would not understand matches nothing. */
export function parseIgnorePatterns(text: string): IgnorePattern[] {
  return asBytes(text.replace(/^\ufeff/, ""))
    .split("\n")
    .flatMap((line) => parsePattern(line.replace(/\r$/, "")) ?? []);
}

/** It is a slash all the same. */
const escapedSlash = /((?:^|[^\\])(?:\\\\)*)\\\//g;

function parsePattern(line: string): IgnorePattern | null {
  // Spaces at the end do not count unless the first of them is escaped.
  let text = line.replace(/((?:^|[^\\])(?:\\\\)*) +$/, "$1");
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
  return { isNegated, isForFolders, ways: waysOf(plain, bound.slice(plain.length)) };
}

/**
 * Git compares what is before the first wildcard by itself, and forgets it: so the stars of `x/a**` are at the
 * beginning of what is left, and stand for slashes as well; those of `a**` before a slash, too.
 */
function waysOf(plain: string, rest: string): string[][] {
  const stars = plain === "" || plain.endsWith("/") ? null : /^\*{2,}(?:(\\?)\/(.*))?$/s.exec(rest);
  if (stars === null) return [segmentsOf(plain + rest)];
  const [, backslash, after] = stars;
  if (after === undefined) return [segmentsOf(`${plain}*`), segmentsOf(`${plain}*/**`)];
  // Where the slash is escaped, there has to be one.
  return [...(backslash === "" ? waysOf(plain, after) : []), segmentsOf(`${plain}*/**/${after}`)];
}

function segmentsOf(text: string): string[] {
  const segments = text.replaceAll(escapedSlash, "$1/").split("/");
  const whole = segments.map((segment) => (/^\*{2,}$/.test(segment) ? "**" : segment));
  // `a/**` is all that is in a, and not a itself.
  return whole.at(-1) === "**" ? [...whole, "*"] : whole;
}

/**
 * Whether a pattern names this path, which is relative to the folder of its file. Of the folders above it nothing is
 * said.
 */
export function matchesPattern({ ways, isForFolders }: IgnorePattern, path: string, { isFolder }: { isFolder: boolean }): boolean {
  if (isForFolders && !isFolder) return false;
  const names = asBytes(path).split("/");
  return ways.some((segments) => matchSequence(segments, names, { isAny: (segment) => segment === "**", fits: matchesName }));
}

/** Git compares bytes, so that `?` is a part of a letter beyond ASCII: one character for each byte, here as there. */
const asBytes = (text: string) => Buffer.from(text, "utf8").toString("latin1");

function matchesName(pattern: string, name: string): boolean {
  const tokens = tokensOf(pattern);
  if (tokens === null) return false;
  return matchSequence(tokens, [...name], {
    isAny: (token) => token === "*",
    fits: (token, character) => token !== "*" && token(character),
  });
}

type Token = "*" | ((character: string) => boolean);

function tokensOf(pattern: string): Token[] | null {
  const tokens: Token[] = [];
  const characters = [...pattern];
  for (let at = 0; at < characters.length; at += 1) {
    const character = characters[at] as string;
    if (character === "*") tokens.push("*");
    else if (character === "?") tokens.push(() => true);
    else if (character === "[") {
      // Classes such as [[:digit:]] are not known here; what they name is shown rather than hidden.
      if (pattern.includes("[:")) return null;
      const found = bracketAt(characters, at);
      if (found === null) return null;
      tokens.push(found.token);
      at = found.end;
    } else {
      if (character === "\\") at += 1;
      const literal = characters[at];
      // A backslash at the end escapes nothing.
      if (literal === undefined) return null;
      tokens.push((other) => other === literal);
    }
  }
  return tokens;
}

/** `[a-z]`, `[!a-z]`, `[]x]`; null when it is not closed. */
function bracketAt(characters: readonly string[], start: number): { token: Token; end: number } | null {
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

/**
 * Whether a pattern with parts that stand for any number of items covers all items. Costs at most parts times items,
 * whatever the pattern is.
 */
function matchSequence<Part, Item>(
  parts: readonly Part[],
  items: readonly Item[],
  { isAny, fits }: { isAny: (part: Part) => boolean; fits: (part: Part, item: Item) => boolean },
): boolean {
  let part = 0;
  let item = 0;
  let again: { part: number; item: number } | null = null;
  while (item < items.length) {
    if (part < parts.length && isAny(parts[part] as Part)) {
      part += 1;
      again = { part, item };
    } else if (part < parts.length && fits(parts[part] as Part, items[item] as Item)) {
      part += 1;
      item += 1;
    } else if (again !== null) {
      // The last such part takes one more.
      again = { part: again.part, item: again.item + 1 };
      ({ part, item } = again);
    } else return false;
  }
  while (part < parts.length && isAny(parts[part] as Part)) part += 1;
  return part === parts.length;
}
