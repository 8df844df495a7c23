import { dockerfileBounds, excerpt, problemAt } from "./dockerfile-problem.ts";

export interface ExpandOptions {
  line: number;
  escapeMark: "\\" | "`";
  /** Returns a variable's value. */
  lookUp: (name: string) => string | undefined;
  /** The characters that the words of one instruction may still become. Absent: this word is the only one. */
  budget?: { characters: number };
}

/** Returns the budget of one instruction, which all its words share. */
export const expansionBudget = () => ({ characters: dockerfileBounds.expandedMax });

/** A position in a raw word, and how deep its variables nest. */
interface Scan {
  raw: string;
  at: number;
  depth: number;
  options: ExpandOptions;
  budget: { characters: number };
}

/**
 * Removes the quotes of a raw word and replaces its variables: `$A`, `${A}`, `${A:-default}`, `${A:+instead}`,
 * `${A:?problem}`, and the same without the colon. Throws `invalid` for an open quote or brace, an unknown modifier, or
 * a result that is too long.
 */
export function expandWord(raw: string, options: ExpandOptions): string {
  const scan: Scan = { raw, at: 0, depth: 0, options, budget: options.budget ?? expansionBudget() };
  return expandUntil(scan, null);
}

/** Expands up to the closing character, which is not consumed; null for the word's end. */
function expandUntil(scan: Scan, closing: "}" | null): string {
  let text = "";
  const { raw, options } = scan;
  while (scan.at < raw.length) {
    const character = raw[scan.at] as string;
    if (character === closing) return text;
    text += nextPiece(scan, character);
  }
  if (closing !== null) throw problemAt(options.line, `${excerpt(raw)} lacks a closing brace`);
  return text;
}

/** Every piece is charged before it is joined: many variables with long values would fill the memory. */
function charged(scan: Scan, text: string): string {
  scan.budget.characters -= text.length;
  if (scan.budget.characters >= 0) return text;
  throw problemAt(scan.options.line, "the instruction is too long after its variables are replaced", { code: "too_large" });
}

function nextPiece(scan: Scan, character: string): string {
  const { raw, options } = scan;
  switch (character) {
    case options.escapeMark:
      scan.at += 2;
      return charged(scan, raw[scan.at - 1] ?? options.escapeMark);
    case "'":
      return singleQuotes(scan);
    case '"':
      return doubleQuotes(scan);
    case "$":
      return variable(scan);
    default:
      scan.at += 1;
      return charged(scan, character);
  }
}

function singleQuotes(scan: Scan): string {
  const end = scan.raw.indexOf("'", scan.at + 1);
  if (end < 0) throw openQuote(scan);
  const text = scan.raw.slice(scan.at + 1, end);
  scan.at = end + 1;
  return charged(scan, text);
}

function doubleQuotes(scan: Scan): string {
  const { raw, options } = scan;
  let text = "";
  scan.at += 1;
  while (scan.at < raw.length) {
    const character = raw[scan.at] as string;
    if (character === '"') {
      scan.at += 1;
      return text;
    }
    const next = raw[scan.at + 1] ?? "";
    if (character === options.escapeMark && ['"', "$", options.escapeMark].includes(next)) {
      text += charged(scan, next);
      scan.at += 2;
    } else if (character === "$") text += variable(scan);
    else {
      text += charged(scan, character);
      scan.at += 1;
    }
  }
  throw openQuote(scan);
}

const openQuote = ({ raw, options }: Scan) => problemAt(options.line, `${excerpt(raw)} has an open quote`);

const NAME = /[A-Za-z_][A-Za-z0-9_]*/y;

function variable(scan: Scan): string {
  const { raw, options } = scan;
  const hasBrace = raw[scan.at + 1] === "{";
  NAME.lastIndex = scan.at + (hasBrace ? 2 : 1);
  const name = NAME.exec(raw)?.[0];
  if (name === undefined) {
    if (hasBrace) throw problemAt(options.line, `${excerpt(raw.slice(scan.at))} is not a variable`);
    scan.at += 1;
    return "$";
  }
  scan.at += name.length + (hasBrace ? 2 : 1);
  const value = options.lookUp(name);
  return hasBrace ? withModifier(scan, { name, value }) : charged(scan, value ?? "");
}

function withModifier(scan: Scan, { name, value }: { name: string; value: string | undefined }): string {
  const { raw, options } = scan;
  if (raw[scan.at] === "}") {
    scan.at += 1;
    return charged(scan, value ?? "");
  }
  const isColon = raw[scan.at] === ":";
  const modifier = raw[scan.at + (isColon ? 1 : 0)] ?? "";
  if (!["-", "+", "?"].includes(modifier))
    throw problemAt(options.line, `\${${name}${excerpt(raw.slice(scan.at), 20)} has a modifier that is not supported`, {
      code: "unsupported",
      hint: "Supported are :- :+ :? and the same without the colon.",
    });
  scan.at += isColon ? 2 : 1;
  if (++scan.depth > dockerfileBounds.nestingMax) throw problemAt(options.line, "variables nest too deeply", { code: "too_large" });
  const word = expandUntil(scan, "}");
  scan.at += 1;
  scan.depth -= 1;
  const isSet = value !== undefined && !(isColon && value === "");
  if (modifier === "+") return isSet ? word : "";
  if (isSet) return charged(scan, value);
  if (modifier === "?") throw problemAt(options.line, `${name} is not set: ${excerpt(word)}`);
  return word;
}
