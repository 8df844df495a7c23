// biome-ignore-all lint/suspicious/noTemplateCurlyInString: the variables of a Dockerfile.
import { expect, test } from "vitest";
import { expandWord, expansionBudget } from "./expand-word.ts";

const values: Readonly<Record<string, string>> = { A: "a", EMPTY: "", TWO: "x y" };
const expand = (raw: string, escapeMark: "\\" | "`" = "\\") => expandWord(raw, { line: 7, escapeMark, lookUp: (name) => values[name] });

test.each([
  ["$A", "a"],
  ["${A}b$A.", "aba."],
  ["$NONE-", "-"],
  ["${NONE:-d}", "d"],
  ["${EMPTY:-d}${EMPTY-d}", "d"],
  ["${A:+b}${EMPTY:+b}${EMPTY+c}${NONE+c}", "bc"],
  ["${NONE:-${ALSO:-$A}}", "a"],
  ["${NONE:-a b}", "a b"],
  ["'$A'\"$A\"$A", "$Aaa"],
  ['"a \\" \\$A \\x"', 'a " $A \\x'],
  ["\\$A\\\\", "$A\\"],
  ["a$", "a$"],
  ["$1", "$1"],
  ['"$TWO"', "x y"],
])("%s becomes %s", (raw, value) => {
  expect(expand(raw)).toBe(value);
});

test("the other escape character leaves backslashes alone", () => {
  expect(expand("c:\\x`$A", "`")).toBe("c:\\x$A");
});

test.each([
  ['"a', "open quote"],
  ["'a", "open quote"],
  ["${A", "modifier that is not supported"],
  ["${A:-b", "lacks a closing brace"],
  ["${}", "is not a variable"],
  ["${A%x}", "modifier that is not supported"],
  ["${NONE:?must be set}", "NONE is not set: must be set"],
])("%s is refused with its line", (raw, message) => {
  expect(() => expand(raw)).toThrow(message);
  expect(() => expand(raw)).toThrow("line 7: ");
});

test("nesting and length are bounded", () => {
  const nested = `${"${X:-".repeat(17)}x${"}".repeat(17)}`;
  expect(() => expand(nested)).toThrow("nest too deeply");
  expect(expand(`${"${X:-".repeat(16)}x${"}".repeat(16)}`)).toBe("x");
  const long = { line: 1, escapeMark: "\\" as const, lookUp: () => "x".repeat(100_000) };
  expect(() => expandWord("$A$A$A", long)).toThrow(expect.objectContaining({ code: "too_large" }));
  expect(() => expandWord(`"${"$A".repeat(10_000)}"`, long)).toThrow(expect.objectContaining({ code: "too_large" }));
});

test("the words of one instruction share one bound", () => {
  const budget = expansionBudget();
  const options = { line: 1, escapeMark: "\\" as const, lookUp: () => "x".repeat(100_000), budget };
  expect(expandWord("$A", options)).toHaveLength(100_000);
  expect(expandWord("$A", options)).toHaveLength(100_000);
  expect(() => expandWord("$A", options)).toThrow("too long after its variables are replaced");
});
