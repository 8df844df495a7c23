import fc from "fast-check";
import { expect, test } from "vitest";
import { createMarkdownView } from "./markdown.ts";

function shown(text: string, columns = 40): string[] {
  const view = createMarkdownView(() => columns);
  return [...text.split("\n").flatMap((each) => view.add(each)), ...view.end()].map((each) => each.text);
}
function styled(text: string): string {
  const view = createMarkdownView(() => 60);
  return [...text.split("\n").flatMap((each) => view.add(each)), ...view.end()].map((each) => each.styled).join("\n");
}

test("headings, lists, quotes and fences lose their signs", () => {
  const text = "\n# Title\n\nSome words\n\n\n- one\n  - two\n1. first\n> quoted\n```ts\nconst a = **1**;\n\nb\n```\nafter\n";
  expect(shown(text)).toEqual([
    "Title",
    "",
    "Some words",
    "",
    "• one",
    "  • two",
    "1. first",
    "│ quoted",
    "│ const a = **1**;",
    "│ ",
    "│ b",
    "after",
  ]);
});

test("bold, italic and code are marked, and stay marked where a row breaks", () => {
  expect(styled("a **bold** and *soft* `x*y*z`")).toBe("a \u001b[1mbold\u001b[0m and \u001b[3msoft\u001b[0m \u001b[36mx*y*z\u001b[0m");
  const view = createMarkdownView(() => 12);
  expect(view.add("x **several bold words**").map((each) => each.styled)).toEqual([
    "x \u001b[1mseveral\u001b[0m",
    "\u001b[1mbold words\u001b[0m",
  ]);
});

test.each(["2 * 3 * 4", "a*b*c", "snake_case_name __init__", "**open", "`open", "a ** b"])("%s stays as it is", (text) => {
  expect(shown(text)).toEqual([text]);
});

test("a table is set in columns, or shown as written where it is too wide", () => {
  const text = "before\n\n| a | long name |\n|---|:--:|\n| `x` | 1 \\| 2 |\nafter";
  expect(shown(text)).toEqual(["before", "", "a  long name", "x  1 | 2", "after"]);
  expect(shown(text, 6).join(" ")).toContain("|---|:");
});

test("where there is no terminal, lines stay as the model wrote them", () => {
  expect(shown("# a **b**\n\n| c |", Number.POSITIVE_INFINITY)).toEqual(["# a **b**", "| c |"]);
});

test("no text gets lost but signs and spaces, and no row is wider than the terminal", () => {
  const letters = (text: string) => text.replace(/[^a-z]/g, "");
  const words = fc.array(fc.constantFrom("ab", "**", "*", "`", " ", "\n", "- ", "# ", "> ", "c d", "|", "é", "漢", "\u001b[2J"), {
    maxLength: 40,
  });
  fc.assert(
    fc.property(words, (pieces) => {
      const text = pieces.join("").replaceAll("```", "``");
      const rows = shown(text, 10);
      expect(letters(rows.join(""))).toBe(letters(text.replaceAll("\u001b[2J", "")));
      expect(rows.join("")).not.toContain("\u001b");
    }),
  );
});
