import { randomInt } from "node:crypto";
import { CaissonError } from "../../contract/error/error.ts";

/** With this many random characters, a duplicate is practically impossible, and so is an accidental match in a text. */
const RANDOM_CHARS_MIN = 16;
const PREFIX_CHARS_MAX = 12;
const GENERIC_CHARS = 40;
const GENERIC_PREFIX = "caisson_";
const LOWER = "abcdefghijklmnopqrstuvwxyz";
const UPPER = LOWER.toUpperCase();
const DIGITS = "0123456789";
/**
 * `ghp_`, `sk-ant-`, `github_pat_`, `dop_v1_`: words in one case, perhaps with a number, each followed by a dash or an
 * underscore. Random text hardly ever begins like this.
 */
const prefixWord = /(?:[a-z]+|[A-Z]+)[0-9]{0,2}[_-]/y;
const uuid = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;
const shape = /^[A-Za-z0-9._-]{8,}$/;

/**
 * Creates the placeholder of a secret: as long as the value, with the prefix by which programs know its kind, with the
 * same kinds of characters, and with dots and dashes at the same places if enough remains to be random. It reveals
 * nothing else about the value: which place had which kind of character stays unknown. It contains only letters, digits
 * and `._-`, so no encoding of a header, a URL or JSON changes it. `value` is null if it is not known. `others` are the
 * placeholders of other secrets.
 */
export function makePlaceholder(value: string | null, others: readonly string[]): string {
  for (;;) {
    const placeholder =
      value === null ? GENERIC_PREFIX + random(GENERIC_CHARS - GENERIC_PREFIX.length, LOWER + UPPER + DIGITS) : alike(value);
    const clashes = others.some((other) => other.includes(placeholder) || placeholder.includes(other));
    if (placeholder !== value && !clashes) return placeholder;
  }
}

interface PlaceholdersOptions {
  names: readonly string[];
  stored: Readonly<Record<string, string>>;
  /** Returns null if the value is not known. */
  peek: (name: string) => string | null;
}

/**
 * Returns the placeholders of a sandbox: the stored ones, and the missing ones, which are created on first use. Throws
 * `invalid` for malformed stored ones.
 */
export function createPlaceholders({ names, stored, peek }: PlaceholdersOptions): { all: () => Readonly<Record<string, string>> } {
  const storedEntries = names.filter((name) => Object.hasOwn(stored, name)).map((name) => [name, stored[name] as string] as const);
  const broken = storedEntries.find(([, text]) => !shape.test(text));
  if (broken !== undefined) throw new CaissonError("invalid", `the stored placeholder of ${broken[0]} is invalid`);
  let all: Readonly<Record<string, string>> | null = null;
  return {
    all() {
      if (all !== null) return all;
      const placeholders = new Map(storedEntries);
      for (const name of names)
        if (!placeholders.has(name)) placeholders.set(name, makePlaceholder(peek(name), [...placeholders.values()]));
      all = Object.freeze(Object.fromEntries(placeholders));
      return all;
    },
  };
}

function alike(value: string): string {
  const prefix = prefixOf(value);
  const rest = value.slice(prefix.length);
  const keepsStructure = rest.replaceAll(/[._-]/g, "").length >= RANDOM_CHARS_MIN;
  const alphabet = alphabetOf(rest);
  return prefix + [...rest].map((letter) => (keepsStructure && /[._-]/.test(letter) ? letter : random(1, alphabet))).join("");
}

function prefixOf(value: string): string {
  if (uuid.test(value)) return "";
  let end = 0;
  for (;;) {
    prefixWord.lastIndex = end;
    const word = prefixWord.exec(value)?.[0];
    if (word === undefined || end + word.length > PREFIX_CHARS_MAX) break;
    end += word.length;
  }
  return value.slice(end).replaceAll(/[._-]/g, "").length >= RANDOM_CHARS_MIN ? value.slice(0, end) : "";
}

function alphabetOf(text: string): string {
  const letters = text.replaceAll(/[^A-Za-z0-9]/g, "");
  if (/[0-9]/.test(letters) && /^(?:[0-9a-f]+|[0-9A-F]+)$/.test(letters) && /[A-Fa-f]/.test(letters)) {
    return DIGITS + (/[a-f]/.test(letters) ? "abcdef" : "ABCDEF");
  }
  const alphabet = (/[a-z]/.test(letters) ? LOWER : "") + (/[A-Z]/.test(letters) ? UPPER : "") + (/[0-9]/.test(letters) ? DIGITS : "");
  return alphabet === "" ? LOWER + UPPER + DIGITS : alphabet;
}

function random(length: number, alphabet: string): string {
  return Array.from({ length }, () => alphabet[randomInt(alphabet.length)]).join("");
}
