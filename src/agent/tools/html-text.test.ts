import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { cpuMs } from "../../../test/support/cpu-time.ts";
import { htmlText } from "./html-text.ts";

describe("the text of a page", () => {
  test.each([
    ["<h1>Title</h1><p>One&nbsp;two&#33; <b>bold</b></p>", "# Title\n\nOne two! bold"],
    ["<ul><li>a</li><li>b</li></ul>", "- a\n- b"],
    ['see <a href="https://x.org/a?b=1&amp;c=2">the page</a>.', "see [the page](https://x.org/a?b=1&c=2)."],
    ["<a href='javascript:alert(1)'>x</a> <a name=y>z</a>", "x z"],
    ["<head><title>t</title></head>a<SCRIPT>if (a<b) {}</script>b<style>p{}</style><!-- c <p> -->c", "abc"],
    ["<table><tr><th>A</th><td>1</td></tr></table>", "A | 1 |"],
    ["a < b", "a"],
    ["&unknown; &#xD800; &lt;tag&gt;", "&unknown; &#xD800; <tag>"],
  ])("%s", (html, text) => {
    expect(htmlText(html)).toBe(text);
  });

  test("accepts any input, and no page can make it slow", () => {
    fc.assert(fc.property(fc.string({ maxLength: 2000 }), (html) => typeof htmlText(html) === "string"));
    for (const piece of ["<", "<a href=", "<script>", "<!--", "&#", "<li>"]) {
      const before = cpuMs();
      htmlText(piece.repeat(200_000));
      expect(cpuMs() - before, piece).toBeLessThan(5_000);
    }
  });
});
