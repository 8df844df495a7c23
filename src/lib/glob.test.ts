import { matchesGlob } from "node:path/posix";
import fc from "fast-check";
import { expect, test } from "vitest";
import { tries } from "../../test/support/thorough.ts";
import { compileGlob } from "./glob.ts";

const matches = (pattern: string, path: string) => compileGlob(pattern)?.(path) ?? null;

test.each([
  ["**/*.ts", "src/deep/a.ts", true],
  ["**/*.ts", "a.ts", true],
  ["**/*.ts", ".cache/a.ts", false],
  [".cache/**/*.ts", ".cache/x/a.ts", true],
  ["*", ".env", false],
  [".*", ".env", true],
  ["src/**", "src/a/b", true],
  ["src/**", "src", false],
  ["*.{md,y{a,}ml}", "x.yml", true],
  ["{a,b}{c,d}", "bd", true],
  ["a{b}c", "a{b}c", true],
  ["[!a]x", "bx", true],
  ["\\*", "*", true],
  ["[", "[", null],
  ["{a,b}".repeat(7), "a", null],
])("%s and %s: %s", (pattern, path, expected) => expect(matches(pattern, path)).toBe(expected));

test("matches exactly what Node's globs match", () => {
  const pattern = fc
    .array(fc.constantFrom("a", "b", ".a", "*", "*a", "a*", "?", "**", "*.b", "{a,b}", "[ab]"), { minLength: 1, maxLength: 5 })
    .map((parts) => parts.join("/"));
  const path = fc.array(fc.constantFrom("a", "b", "aa", ".a", "a.b", ".b"), { minLength: 1, maxLength: 5 }).map((parts) => parts.join("/"));
  fc.assert(
    fc.property(pattern, path, (glob, name) => {
      // Node's `a/**` also matches `a` itself, but that is a folder and our callers never pass folders.
      fc.pre(!glob.endsWith("**"));
      expect(matches(glob, name)).toBe(matchesGlob(name, glob));
    }),
    { numRuns: tries(3000) },
  );
});
