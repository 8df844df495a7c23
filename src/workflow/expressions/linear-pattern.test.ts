import fc from "fast-check";
import { expect, test } from "vitest";
import { tries } from "../../../test/support/thorough.ts";
import { compilePattern } from "./linear-pattern.ts";

const matches = (pattern: string, text: string) => compilePattern(pattern).matches(text, () => undefined);

test.each([
  ["^[a-z.]+@(?:x|y)$", "foo.bar@x", true],
  ["(?i)HELLO", "say hello", true],
  ["(?i:a)b", "Ab", true],
  ["(?i:a)b", "AB", false],
  ["(?P<year>\\d{4})-\\d{2}", "on 2026-11", true],
  ["(?<year>\\d{4})", "2026", true],
  ["^a.c$", "a\nc", false],
  ["(?s)^a.c$", "a\nc", true],
  ["(?m)^b$", "a\nb\nc", true],
  ["\\bcat\\b", "a cat.", true],
  ["\\bcat\\b", "concat", false],
  ["[[:alpha:]]+[^[:digit:]]", "ab!", true],
  ["\\p{Lu}\\pL", "Éa", true],
  ["\\Qa.b\\E", "a.b", true],
  ["\\Qa.b\\E", "axb", false],
  ["^.$", "🙂", true],
  ["a{,2}", "a{,2}", true],
  ["x{2,3}y", "xxxxy", true],
  ["^x{2,3}y", "xxxxy", false],
  ["[]a]", "]", true],
  ["[\\d-]+$", "1-2", true],
  ["\\x41\\x{1F642}", "A🙂", true],
])("searches for %s in %j: %s", (pattern, text, isFound) => expect(matches(pattern, text)).toBe(isFound));

test.each(["(", ")", "a**", "*a", "[z-a]", "(?=a)", "(?<!a)", "\\1", "a{5000}", "[[:nope:]]", "\\p{constructor}", "[a", "\\", "\\y"])(
  "rejects %s",
  (pattern) => expect(() => compilePattern(pattern)).toThrow("a regular expression"),
);

test("matches exactly what the equivalent JavaScript regular expression matches", () => {
  const leaf = fc.constantFrom("a", "b", ".", "[ab]", "[^a]", "^", "$", "\\w", "\\b");
  const { pattern } = fc.letrec<{ pattern: string }>((tie) => ({
    pattern: fc.oneof(
      { maxDepth: 4 },
      leaf,
      fc.tuple(tie("pattern"), tie("pattern")).map(([left, right]) => `${left}${right}`),
      fc.tuple(tie("pattern"), tie("pattern")).map(([left, right]) => `(${left}|${right})`),
      fc.tuple(tie("pattern"), fc.constantFrom("*", "+", "?", "{2}", "{1,2}", "*?")).map(([part, count]) => `(?:${part})${count}`),
    ),
  }));
  fc.assert(
    fc.property(pattern, fc.string({ unit: fc.constantFrom("a", "b", "c", "\n"), maxLength: 8 }), (source, text) => {
      expect(matches(source, text)).toBe(new RegExp(source).test(text));
    }),
    { numRuns: tries(2000) },
  );
});

test("takes steps in proportion to the text, not to the ways to match it", () => {
  const stepsFor = (length: number) => {
    let steps = 0;
    compilePattern("^(a+)+(a|aa)*$").matches(`${"a".repeat(length)}!`, (more) => {
      steps += more;
    });
    return steps;
  };
  expect(stepsFor(20_000)).toBeLessThan(2.1 * stepsFor(10_000));
});
