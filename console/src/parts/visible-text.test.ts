import { expect, test } from "vitest";
import { visibleLines, visibleText, visibleTitle } from "./visible-text.ts";

test("makes characters visible that hide or reverse a name", () => {
  expect(visibleText("a\nb\u001b[31m\u007f")).toBe("a\u240ab\u241b[31m\u2421");
  expect(visibleText("cod\u202Etxt.exe")).toBe("cod\u27e8U+202E\u27e9txt.exe");
  expect(visibleText("a\u200bb\u2066c")).toBe("a\u27e8U+200B\u27e9b\u27e8U+2066\u27e9c");
});

test("keeps ordinary names of any script", () => {
  for (const name of ["README.md", "größe.txt", "日本語.md", "עברית", "a b", "<img src=x>"]) expect(visibleText(name)).toBe(name);
});

test("keeps line breaks, tabs and joined characters of a longer text", () => {
  expect(visibleLines("one\r\ntwo\tthree\n\u202e\u0000")).toBe("one\ntwo\tthree\n\u27e8U+202E\u27e9\u2400");
  expect(visibleLines("👩‍💻 שלום")).toBe("👩‍💻 שלום");
});

test("takes the first line with content as the title", () => {
  expect(visibleTitle("\n  Count lines \r\n\nWrite lines.sh")).toBe("Count lines");
  expect(visibleTitle("one\u202etwo")).toBe("one\u27e8U+202E\u27e9two");
  expect(visibleTitle("")).toBe("");
});
