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
  expect(() => parseIgnoreFile(`${"a".repeat(4_000)}\n`.repeat(17), "x")).toThrow("more than 65536 characters");
});

test("patterns with many wildcards take bounded time, also for deep paths", () => {
  const rules = parseIgnoreFile(`${"**/*a*a*a*a*a*a*a*b\n".repeat(999)}${"**/".repeat(500)}x`, "x");
  const deep = Array<string>(50).fill("a".repeat(60)).join("/");
  const before = process.cpuUsage().user;
  for (let number = 0; number < 20; number += 1) expect(rules.isIgnored(`${deep}/${number}`)).toBe(false);
  expect(process.cpuUsage().user - before).toBeLessThan(20_000_000);
});

test("a rule for a folder decides for what is below, until a later rule does", () => {
  const rules = parseIgnoreFile("a\n!a/b\na/b/c", "x");
  expect(["a/x", "a/b/x", "a/b/c/d", "a/b/x"].map((path) => rules.isIgnored(path))).toEqual([true, false, true, false]);
});
