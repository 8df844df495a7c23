import fc from "fast-check";
import { expect, test } from "vitest";
import { tries } from "../../../test/support/thorough.ts";
import { createPatternMatcher, type PatternMatch } from "./pattern-matcher.ts";

const letters = (min: number, max: number) => fc.string({ unit: fc.constantFrom("a", "b", "c"), minLength: min, maxLength: max });

/** The naive search, for comparison. */
function expected(text: string, patterns: readonly string[], from: number, until: number): PatternMatch | null {
  for (let at = from; at < until; at++) {
    const here = patterns.map((pattern, index) => ({ pattern, index })).filter(({ pattern }) => text.startsWith(pattern, at));
    const best = here.sort((left, right) => right.pattern.length - left.pattern.length)[0];
    if (best !== undefined) return { at, length: best.pattern.length, index: best.index };
  }
  return null;
}

test("finds the same matches as a naive search", () => {
  const patterns = fc.uniqueArray(letters(2, 6), { minLength: 1, maxLength: 5 });
  fc.assert(
    fc.property(letters(0, 60), patterns, fc.nat(20), fc.nat(60), (text, wanted, from, until) => {
      const matcher = createPatternMatcher(wanted.map((pattern) => Buffer.from(pattern)));
      expect(matcher?.find(Buffer.from(text), from, Math.min(until, text.length))).toEqual(
        expected(text, wanted, from, Math.min(until, text.length)),
      );
    }),
    { numRuns: tries(3000) },
  );
});

test("finds where a pattern is cut off, and ignores complete ones", () => {
  const patterns = fc.uniqueArray(letters(2, 6), { minLength: 1, maxLength: 5 });
  fc.assert(
    fc.property(letters(0, 30), patterns, fc.nat(30), (text, wanted, from) => {
      const matcher = createPatternMatcher(wanted.map((pattern) => Buffer.from(pattern)));
      const cutOff = (at: number) => wanted.some((pattern) => pattern.length > text.length - at && pattern.startsWith(text.slice(at)));
      let first = Math.min(from, text.length);
      while (first < text.length && !cutOff(first)) first += 1;
      expect(matcher?.findUnfinished(Buffer.from(text), Math.min(from, text.length))).toBe(first);
    }),
    { numRuns: tries(3000) },
  );
});

test("compares patterns longer than the window to their end", () => {
  const long = "a".repeat(200);
  const matcher = createPatternMatcher([Buffer.from(`${long}b`), Buffer.from(`${long}c`)]);
  expect(matcher?.find(Buffer.from(`x${"a".repeat(300)}c`), 0, 302)).toEqual({ at: 101, length: 201, index: 1 });
});

test("is null without patterns", () => {
  expect(createPatternMatcher([])).toBeNull();
});
