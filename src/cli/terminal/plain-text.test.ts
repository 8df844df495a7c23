import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { cutToWidth, displayWidth, plainText, wrapText } from "./plain-text.ts";

describe("text from inside", () => {
  test("loses all control characters", () => {
    expect(
      plainText("\x1b[31mred\x1b[0m \x07bell \x1b]0;title\x07and\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\ \x1bPq#0\x1b\\x\x9b2Jy\r\b"),
    ).toBe("red bell andlink xy");
    expect(plainText("a\tb\u202egnp.exe\u202c\nnext")).toBe("a    bgnp.exe\nnext");
    fc.assert(
      fc.property(fc.string({ unit: "binary" }), (text) => {
        // biome-ignore lint/suspicious/noControlCharactersInRegex: what must not be there.
        expect(plainText(text)).not.toMatch(/[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e]/);
      }),
    );
  });

  test("is cut and wrapped by its visible width", () => {
    expect(cutToWidth("hello world", 7)).toBe("hello …");
    expect(cutToWidth("日本語です", 6)).toBe("日本…");
    expect(wrapText("the quick brown fox", 9)).toEqual(["the quick", "brown fox"]);
    expect(wrapText("abcdefghij kl", 4)).toEqual(["abcd", "efgh", "ij", "kl"]);
    fc.assert(
      fc.property(fc.string({ unit: "grapheme" }), fc.integer({ min: 4, max: 60 }), (text, columns) => {
        const clean = plainText(text).replaceAll("\n", " ");
        expect(displayWidth(cutToWidth(clean, columns))).toBeLessThanOrEqual(columns);
        for (const row of wrapText(clean, columns)) expect(displayWidth(row)).toBeLessThanOrEqual(columns);
      }),
    );
  });
});
