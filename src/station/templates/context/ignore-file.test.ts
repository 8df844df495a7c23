import { expect, test } from "vitest";
import { parseIgnoreFile } from "./ignore-file.ts";

const ignored = (text: string, ...paths: string[]) => paths.filter((path) => parseIgnoreFile(text, ".dockerignore").isIgnored(path));

test("a rule matches from the root, and everything below a folder", () => {
  expect(ignored("node_modules\n/dist/", "node_modules/a/b", "sub/node_modules/a", "dist", "dist/x", "src")).toEqual([
    "node_modules/a/b",
    "dist",
    "dist/x",
  ]);
});

test("stars stay within a name, and two stars cross folders", () => {
  expect(ignored("*.md\n**/*.log", "a.md", "b/a.md", "a.log", "b/c/a.log")).toEqual(["a.md", "a.log", "b/c/a.log"]);
});

test("the last rule that matches decides, and exceptions bring back", () => {
  const text = "# comment\n*\n!src\nsrc/secret\n!src/secret/public";
  expect(ignored(text, "a", "src/x", "src/secret/a", "src/secret/public")).toEqual(["a", "src/secret/a"]);
  expect(parseIgnoreFile(text, "x").hasExceptions).toBe(true);
});

test("a leading dot is not special", () => {
  expect(ignored("*", ".env", "a")).toEqual([".env", "a"]);
});

test("malformed and too many rules are refused", () => {
  expect(() => parseIgnoreFile("[a", "x")).toThrow("not a pattern");
  expect(() => parseIgnoreFile("a\n".repeat(1_001), "x")).toThrow("more than 1000 rules");
});
