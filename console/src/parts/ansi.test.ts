import { createElement } from "react";
import { renderToStaticMarkup } from "react-dom/server";
import { expect, test } from "vitest";
import { Ansi } from "./ansi.tsx";
import { ansiSpans } from "./ansi-spans.ts";

const textOf = (text: string) =>
  ansiSpans(text)
    .map((span) => span.text)
    .join("");

test("keeps colors and weights", () => {
  const [red, plain] = ansiSpans("\u001b[1;31mred\u001b[0m plain");
  expect(red).toMatchObject({ text: "red", color: "187, 0, 0", isBold: true });
  expect(plain).toMatchObject({ text: " plain", color: null, isBold: false });
});

test("drops terminal commands, and makes hidden text visible", () => {
  expect(textOf("a\u001b]0;title\u0007b")).toBe("ab");
  expect(textOf("a\u001b]8;;http://evil.example\u001b\\link\u001b]8;;\u001b\\")).toBe("alink");
  expect(textOf("a\u001b[2J\u001b[1;1Hb\u001b[?25lc")).toBe("abc");
  expect(textOf("x\u202ey\u0007")).toBe("x⟨U+202E⟩y␇");
  expect(textOf("<script>alert(1)</script>")).toBe("<script>alert(1)</script>");
});

test("shows what remains of an overwritten line", () => {
  expect(textOf("10%\r50%\r100%\nnext\r\n")).toBe("100%\nnext\n");
});

test("reduces a color to numbers", () => {
  expect(ansiSpans("\u001b[38;5;196mx")[0]?.color).toMatch(/^\d+, \d+, \d+$/);
  expect(ansiSpans("\u001b[38;2;1;2;3mx")[0]?.color).toBe("1, 2, 3");
});

test("draws one long line, in a bounded number of pieces", () => {
  expect(renderToStaticMarkup(createElement(Ansi, { text: "a".repeat(30_000) }))).toContain("a".repeat(30_000));
  const many = ansiSpans("\u001b[31mx\u001b[0my".repeat(20_000));
  expect(many.length).toBeLessThan(5_010);
  expect(many.map(({ text }) => text).join("")).toBe("xy".repeat(20_000));
  expect(textOf("a".repeat(600_000))).toMatch(/a\n… 100000 more characters$/);
});
