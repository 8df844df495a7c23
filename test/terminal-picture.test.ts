import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { outputOf, picturePath, readmePicture, terminalPicture } from "../scripts/terminal-picture.ts";

describe("the README's terminal picture", () => {
  test("shows the walk's current screens", () => {
    expect(readFileSync(picturePath, "utf8"), "out of date: node scripts/terminal-picture.ts").toBe(readmePicture());
    expect(readFileSync(join(import.meta.dirname, "..", "README.md"), "utf8")).toContain("(docs/first-hour.svg)");
  });

  test("shows one command with its output", () => {
    const screen = "$ a\n1\n$ b --x\n2\n\n3\n$ c\n";
    expect(outputOf(screen, "b")).toEqual(["$ b --x", "2", "", "3"]);
    expect(outputOf(screen, "c")).toEqual(["$ c"]);
    expect(() => outputOf(screen, "d")).toThrow("no prompt");
  });

  test("keeps every character in its column", () => {
    const picture = terminalPicture(["$ echo '<b>&'", "  <b>&"], "x");
    expect(picture).toContain(">$ echo '&lt;b&gt;&amp;'</text>");
    expect(picture).toMatch(/<text x="33\.6" y="65" textLength="31\.2" [^>]*>&lt;b&gt;&amp;<\/text>/);
  });
});
