import { expect, test } from "vitest";
import { parseJsonc } from "./parse-jsonc.ts";

test("reads comments and trailing commas, but not in strings", () => {
  const text = '\uFEFF// one\n{ "a": "//x, }", /* two\n */ "b": [1, 2, /* three */ ], // four\n}';
  expect(parseJsonc(text, "x.json")).toEqual({ a: "//x, }", b: [1, 2] });
});

test("keeps escaped quotes", () => {
  expect(parseJsonc('{"a": "\\"// not a comment"}', "x.json")).toEqual({ a: '"// not a comment' });
});

test.each(["{", '{"a" "b"}', "[,]", '{"a": "open', "/* open"])("%s is refused by the file's name", (text) => {
  expect(() => parseJsonc(text, "x.json")).toThrow("x.json is not JSON with comments");
});
