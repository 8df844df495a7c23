/** Returns whether a position of the pattern accepts the character with this code point. */
export type CharacterTest = (code: number) => boolean;

/** Pattern flags: `i` ignores case, `m` matches `^` and `$` at each line, `s` lets `.` match a newline. */
export interface Flags {
  i: boolean;
  m: boolean;
  s: boolean;
}

const codeOf = (character: string): number => character.codePointAt(0) ?? 0;

export function literal(character: string, { i }: Flags): CharacterTest {
  const code = codeOf(character);
  if (!i) return (other) => other === code;
  const folded = character.toLowerCase();
  return (other) => other === code || String.fromCodePoint(other).toLowerCase() === folded;
}

export function range(from: string, to: string, { i }: Flags): CharacterTest {
  const [low, high] = [codeOf(from), codeOf(to)];
  if (low > high) throw new Error("a regular expression has a range in reverse order");
  const isIn = (code: number) => low <= code && code <= high;
  if (!i) return isIn;
  return (code) => {
    const character = String.fromCodePoint(code);
    return isIn(code) || isIn(codeOf(character.toLowerCase())) || isIn(codeOf(character.toUpperCase()));
  };
}

const among =
  (...ranges: [string, string][]): CharacterTest =>
  (code) =>
    ranges.some(([from, to]) => codeOf(from) <= code && code <= codeOf(to));
const not =
  (test: CharacterTest): CharacterTest =>
  (code) =>
    !test(code);
function table<Value>(entries: Record<string, Value>): ReadonlyMap<string, Value> {
  return new Map(Object.entries(entries));
}

const digit = among(["0", "9"]);
const word = among(["0", "9"], ["A", "Z"], ["a", "z"], ["_", "_"]);
const space = among(["\t", "\n"], ["\f", "\r"], [" ", " "]);

export const perl = table<CharacterTest>({ d: digit, D: not(digit), w: word, W: not(word), s: space, S: not(space) });
export const controls = table({ a: "\x07", f: "\f", t: "\t", n: "\n", r: "\r", v: "\v" });
export const posix = table<CharacterTest>({
  alnum: among(["0", "9"], ["A", "Z"], ["a", "z"]),
  alpha: among(["A", "Z"], ["a", "z"]),
  ascii: among(["\0", "\x7f"]),
  blank: among(["\t", "\t"], [" ", " "]),
  cntrl: among(["\0", "\x1f"], ["\x7f", "\x7f"]),
  digit,
  graph: among(["!", "~"]),
  lower: among(["a", "z"]),
  print: among([" ", "~"]),
  punct: among(["!", "/"], [":", "@"], ["[", "`"], ["{", "~"]),
  space: among(["\t", "\r"], [" ", " "]),
  upper: among(["A", "Z"]),
  word,
  xdigit: among(["0", "9"], ["A", "F"], ["a", "f"]),
});

/** Categories and scripts. Each tests one character, so all tests cost the same. */
const categories = new Map<string, RegExp>([
  ["L", /^\p{L}$/u],
  ["Lu", /^\p{Lu}$/u],
  ["Ll", /^\p{Ll}$/u],
  ["M", /^\p{M}$/u],
  ["N", /^\p{N}$/u],
  ["Nd", /^\p{Nd}$/u],
  ["P", /^\p{P}$/u],
  ["S", /^\p{S}$/u],
  ["Z", /^\p{Z}$/u],
  ["Greek", /^\p{Script=Greek}$/u],
  ["Latin", /^\p{Script=Latin}$/u],
  ["Cyrillic", /^\p{Script=Cyrillic}$/u],
  ["Han", /^\p{Script=Han}$/u],
]);

export function unicode(name: string, isNegated: boolean): CharacterTest {
  const isWhole = name.startsWith("^");
  const test = categories.get(isWhole ? name.slice(1) : name);
  if (test === undefined) throw new Error(`a regular expression has the unknown class \\p{${name.slice(0, 20)}}`);
  return (code) => test.test(String.fromCodePoint(code)) !== (isNegated !== isWhole);
}
