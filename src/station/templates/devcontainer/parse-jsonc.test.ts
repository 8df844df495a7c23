import { expect, test } from "vitest";
import { parseJsonc } from "./parse-jsonc.ts";

test("reads comments and trailing commas, but not in strings", () => {
  const text = '\uFEFF// one\n{ "a": "//x, }", /* two\n */ "b": [1, 2, /* three */ ], // four\n}';
  expect(parseJsonc(text, "x.json")).toEqual({ a: "//x, }", b: [1, 2] });
});

test("keeps escaped quotes", () => {
  expect(parseJsonc('{"a": "\\"// not a comment"}', "x.json")).toEqual({ a: '"// not a comment' });
});

test.each(["{", '{"a" "b"}', "[,]", "[1,,]", '{"a": "open', "/* open"])("%s is refused by the file's name", (text) => {
  expect(() => parseJsonc(text, "x.json")).toThrow("x.json is not JSON with comments");
});

test("many trailing commas take linear time", () => {
  const text = `[${"[1,],".repeat(150_000)}]`;
  const before = process.cpuUsage().user;
  expect(parseJsonc(text, "x.json")).toHaveLength(150_000);
  expect(process.cpuUsage().user - before).toBeLessThan(10_000_000);
});

test("deep nesting is an error or a value, never a crash", () => {
  const deep = "[".repeat(500_000);
  expect(() => parseJsonc(deep, "x.json")).toThrow("x.json is not JSON with comments");
});
