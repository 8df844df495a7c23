import { stripVTControlCharacters } from "node:util";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { bold, good, joinLines, Line, line, lines, quotedName } from "./line.ts";
import { visibleJson } from "./plain-text.ts";

const anything = fc.string({ unit: "binary" });
/** Control characters, bidirectional marks and invisible characters. */
const obeyed = /[\p{Cc}\p{Cs}\u061c\u200b\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]/u;

describe("a line", () => {
  test("shows control characters escaped", () => {
    expect(line`left out ${"e\x1b[31m\x1b]0;t\x07"}: ${"n\nfake"} ${"\u202egnp\u009b2J"}`.text).toBe(
      String.raw`left out e\x1b[31m\x1b]0;t\x07: n\nfake \u202egnp\x9b2J`,
    );
    expect(bold(good("done"), " at ", 3).styled).toBe("\x1b[1;32mdone\x1b[0m\x1b[1m at \x1b[0m\x1b[1m3\x1b[0m");
    expect(joinLines(["a", bold("b"), "c"], ", ").text).toBe("a, b, c");
  });

  test("is one line without control sequences, for any input", () => {
    fc.assert(
      fc.property(anything, anything, (one, two) => {
        const result = line`${one}: ${bold(two, good(one))} ${quotedName(two)} ${Line.of([one, 1])}`;
        expect(result.text).not.toMatch(obeyed);
        expect(stripVTControlCharacters(result.styled)).toBe(result.text);
        for (const each of lines(two)) expect(each.text).not.toMatch(obeyed);
      }),
    );
  });

  test("is not a string, and cannot become part of one by mistake", () => {
    const result: unknown = line`x`;
    expect(() => `${result}`).toThrow("not a string");
  });
});

test("a file name is quoted if it could be mistaken for something else", () => {
  const quote = (name: string) => quotedName(name).text;
  expect(quote("src/größe ok.ts")).toBe("src/größe ok.ts");
  expect(quote("n\nfake")).toBe(String.raw`"n\nfake"`);
  expect(quote('a"b\\n')).toBe(String.raw`"a\"b\\n"`);
  expect(quote("end ")).toBe('"end "');
  expect(quote("")).toBe('""');
  expect(quote("\u202e\u2028\x9b")).toBe(String.raw`"\u202e\u2028\x9b"`);
});

test("visible JSON has the same value, without control characters", () => {
  expect(visibleJson({ name: "\x1b\x9b\u202e\u{e0041}\n" })).toBe(String.raw`{"name":"\u001b\u009b\u202e\udb40\udc41\n"}`);
  fc.assert(
    fc.property(fc.dictionary(anything, fc.array(anything)), fc.constantFrom(undefined, 2), (value, indent) => {
      const text = visibleJson(value, indent);
      expect(JSON.parse(text)).toEqual(JSON.parse(JSON.stringify(value)));
      expect(indent === undefined ? text : text.replaceAll("\n", "")).not.toMatch(obeyed);
    }),
  );
});
