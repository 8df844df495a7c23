import { type CharacterTest, controls, type Flags, literal, perl, posix, range, unicode } from "./pattern-characters.ts";

export type PatternNode =
  | { kind: "empty" }
  | { kind: "test"; test: CharacterTest }
  | { kind: "assert"; at: "start" | "end" | "lineStart" | "lineEnd" | "boundary" | "inside" }
  | { kind: "all"; parts: PatternNode[] }
  | { kind: "any"; parts: PatternNode[] }
  | { kind: "repeat"; part: PatternNode; min: number; max: number | null };

const PATTERN_CHARACTERS_MAX = 1_000;
const DEPTH_MAX = 50;
const REPEAT_MAX = 1_000;

/** Parses RE2's syntax. Throws an Error that explains what is wrong. */
export function parsePattern(pattern: string): PatternNode {
  if (pattern.length > PATTERN_CHARACTERS_MAX) throw new Error(`a regular expression has more than ${PATTERN_CHARACTERS_MAX} characters`);
  const reader = new Reader(pattern);
  const node = reader.alternatives({ i: false, m: false, s: false }, 0);
  if (reader.peek() !== undefined) throw new Error("a regular expression has an unmatched )");
  return node;
}

class Reader {
  readonly #characters: readonly string[];
  #at = 0;

  constructor(pattern: string) {
    this.#characters = [...pattern];
  }

  peek(): string | undefined {
    return this.#characters[this.#at];
  }

  #take(): string {
    const character = this.#characters[this.#at];
    if (character === undefined) throw new Error("a regular expression ends unexpectedly");
    this.#at += 1;
    return character;
  }

  #skip(text: string): boolean {
    const ahead = this.#characters.slice(this.#at, this.#at + text.length).join("");
    if (ahead !== text) return false;
    this.#at += text.length;
    return true;
  }

  alternatives(outer: Flags, depth: number): PatternNode {
    if (depth > DEPTH_MAX) throw new Error(`a regular expression is nested more than ${DEPTH_MAX} deep`);
    // Flags set within a group apply to the rest of the group.
    const flags = { ...outer };
    const ways: PatternNode[] = [];
    let parts: PatternNode[] = [];
    for (let next = this.peek(); next !== undefined && next !== ")"; next = this.peek()) {
      if (next === "|") {
        this.#at += 1;
        ways.push({ kind: "all", parts });
        parts = [];
      } else parts.push(this.#repeated(this.#atom(flags, depth)));
    }
    ways.push({ kind: "all", parts });
    return ways.length === 1 ? (ways[0] as PatternNode) : { kind: "any", parts: ways };
  }

  #repeated(atom: PatternNode): PatternNode {
    const bounds = this.#bounds();
    if (bounds === null) return atom;
    // Greedy and lazy repetitions match the same texts.
    this.#skip("?");
    if (this.#bounds() !== null) throw new Error("a regular expression has two quantifiers in a row");
    return { kind: "repeat", part: atom, ...bounds };
  }

  #bounds(): { min: number; max: number | null } | null {
    if (this.#skip("*")) return { min: 0, max: null };
    if (this.#skip("+")) return { min: 1, max: null };
    if (this.#skip("?")) return { min: 0, max: 1 };
    const from = this.#at;
    if (!this.#skip("{")) return null;
    const min = this.#number();
    const hasComma = this.#skip(",");
    const max = hasComma ? this.#number() : min;
    if (min === null || !this.#skip("}")) {
      // Not a repetition: the brace is literal.
      this.#at = from;
      return null;
    }
    if (min > REPEAT_MAX || (max !== null && (max > REPEAT_MAX || max < min))) {
      throw new Error(`a regular expression repeats more than ${REPEAT_MAX} times`);
    }
    return { min, max };
  }

  #number(): number | null {
    let digits = "";
    while (/^\d$/.test(this.peek() ?? "") && digits.length < 6) digits += this.#take();
    return digits === "" ? null : Number(digits);
  }

  #atom(flags: Flags, depth: number): PatternNode {
    const character = this.#take();
    if (character === "(") return this.#group(flags, depth);
    if (character === "[") return { kind: "test", test: this.#set(flags) };
    if (character === ".") return { kind: "test", test: flags.s ? () => true : (code) => code !== 10 };
    if (character === "^") return { kind: "assert", at: flags.m ? "lineStart" : "start" };
    if (character === "$") return { kind: "assert", at: flags.m ? "lineEnd" : "end" };
    if (character === "*" || character === "+" || character === "?")
      throw new Error("a regular expression has a quantifier with nothing to repeat");
    if (character === "\\") return this.#escape(flags);
    return { kind: "test", test: literal(character, flags) };
  }

  #group(flags: Flags, depth: number): PatternNode {
    let inner = flags;
    if (this.#skip("?")) {
      if (this.#skip("P<") || (this.peek() === "<" && !this.#isLookBehind() && this.#skip("<"))) {
        while (this.#take() !== ">");
      } else {
        const set = this.#flags(flags);
        if (set.isWhole) {
          Object.assign(flags, set.flags);
          return { kind: "empty" };
        }
        inner = set.flags;
      }
    }
    const node = this.alternatives(inner, depth + 1);
    if (!this.#skip(")")) throw new Error("a regular expression has an unmatched (");
    return node;
  }

  #isLookBehind(): boolean {
    const after = this.#characters[this.#at + 1];
    return after === "=" || after === "!";
  }

  /** Parses `(?i)`, `(?i:`, `(?:` or `(?-s:`. */
  #flags(outer: Flags): { flags: Flags; isWhole: boolean } {
    const flags = { ...outer };
    let value = true;
    for (;;) {
      const character = this.#take();
      if (character === ":") return { flags, isWhole: false };
      if (character === ")") return { flags, isWhole: true };
      if (character === "-") value = false;
      else if (character === "i" || character === "m" || character === "s") flags[character] = value;
      else if (character !== "U") throw new Error("a regular expression has look-around, which RE2 does not support");
    }
  }

  #escape(flags: Flags): PatternNode {
    const next = this.peek() ?? "";
    if (next === "b" || next === "B" || next === "A" || next === "z") {
      this.#at += 1;
      return { kind: "assert", at: ({ b: "boundary", B: "inside", A: "start", z: "end" } as const)[next] };
    }
    if (/^[1-9]$/.test(next)) throw new Error("a regular expression has a back-reference, which RE2 does not support");
    if (next === "Q") return this.#quotedText(flags);
    return { kind: "test", test: this.#escapedTest(flags) };
  }

  #quotedText(flags: Flags): PatternNode {
    this.#at += 1;
    const parts: PatternNode[] = [];
    while (this.peek() !== undefined && !this.#skip("\\E")) parts.push({ kind: "test", test: literal(this.#take(), flags) });
    return { kind: "all", parts };
  }

  /** Parses the rest of an escape that matches one character, in a class or outside. */
  #escapedTest(flags: Flags): CharacterTest {
    const named = this.#classAt();
    return named ?? literal(this.#escapedCharacter(), flags);
  }

  #classAt(): CharacterTest | null {
    const character = this.peek() ?? "";
    const known = perl.get(character);
    if (known !== undefined) {
      this.#at += 1;
      return known;
    }
    if (character !== "p" && character !== "P") return null;
    this.#at += 1;
    let name = this.#take();
    if (name === "{") {
      name = "";
      for (let next = this.#take(); next !== "}"; next = this.#take()) name += next;
    }
    return unicode(name, character === "P");
  }

  #escapedCharacter(): string {
    const character = this.#take();
    const known = controls.get(character);
    if (known !== undefined) return known;
    if (character === "x") return this.#hexadecimal();
    if (/^[A-Za-z0-9]$/.test(character)) throw new Error(`a regular expression has the unknown escape \\${character}`);
    return character;
  }

  #hexadecimal(): string {
    let digits = "";
    if (this.#skip("{")) for (let next = this.#take(); next !== "}"; next = this.#take()) digits += next;
    else digits = this.#take() + this.#take();
    const code = /^[0-9a-fA-F]{1,6}$/.test(digits) ? Number.parseInt(digits, 16) : -1;
    if (code < 0 || code > 0x10ffff) throw new Error("a regular expression has an escape for a character that does not exist");
    return String.fromCodePoint(code);
  }

  #set(flags: Flags): CharacterTest {
    const isNegated = this.#skip("^");
    const tests: CharacterTest[] = [];
    for (let isFirst = true; isFirst || this.peek() !== "]"; isFirst = false) tests.push(this.#setItem(flags));
    this.#at += 1;
    return (code) => tests.some((test) => test(code)) !== isNegated;
  }

  #setItem(flags: Flags): CharacterTest {
    if (this.peek() === "[" && this.#characters[this.#at + 1] === ":") return this.#posix();
    let from = this.#take();
    if (from === "\\") {
      const named = this.#classAt();
      if (named !== null) return named;
      from = this.#escapedCharacter();
    }
    if (this.peek() !== "-" || this.#characters[this.#at + 1] === "]" || this.#characters[this.#at + 1] === undefined)
      return literal(from, flags);
    this.#at += 1;
    let to = this.#take();
    if (to === "\\") to = this.#escapedCharacter();
    return range(from, to, flags);
  }

  #posix(): CharacterTest {
    this.#at += 2;
    let name = "";
    while (!this.#skip(":]")) name += this.#take();
    const isNegated = name.startsWith("^");
    const test = posix.get(isNegated ? name.slice(1) : name);
    if (test === undefined) throw new Error(`a regular expression has the unknown class [:${name.slice(0, 20)}:]`);
    return isNegated ? (code) => !test(code) : test;
  }
}
