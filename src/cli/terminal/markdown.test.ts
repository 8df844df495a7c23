import fc from "fast-check";
import { expect, test } from "vitest";
import { createMarkdownView } from "./markdown.ts";

function render(text: string, columns = 40): string[] {
  const view = createMarkdownView(() => columns);
  return [...text.split("\n").flatMap((each) => view.add(each)), ...view.end()].map((each) => each.text);
}
function styled(text: string): string {
  const view = createMarkdownView(() => 60);
  return [...text.split("\n").flatMap((each) => view.add(each)), ...view.end()].map((each) => each.styled).join("\n");
}

test("removes the signs of headings, lists, quotes and fences", () => {
  const text = "\n# Title\n\nSome words\n\n\n- one\n  - two\n1. first\n> quoted\n```ts\nconst a = **1**;\n\nb\n```\nafter\n";
  expect(render(text)).toEqual([
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

test("styles bold, italic and code, even across wrapped rows", () => {
  expect(styled("a **bold** and *soft* `x*y*z`")).toBe("a \u001b[1mbold\u001b[0m and \u001b[3msoft\u001b[0m \u001b[36mx*y*z\u001b[0m");
  const view = createMarkdownView(() => 12);
  expect(view.add("x **several bold words**").map((each) => each.styled)).toEqual([
    "x \u001b[1mseveral\u001b[0m",
    "\u001b[1mbold words\u001b[0m",
  ]);
});

test.each(["2 * 3 * 4", "a*b*c", "snake_case_name __init__", "**open", "`open", "a ** b"])("leaves %s unchanged", (text) => {
  expect(render(text)).toEqual([text]);
});

test("aligns a table, or leaves it unchanged if it is too wide", () => {
  const text = "before\n\n| a | long name |\n|---|:--:|\n| `x` | 1 \\| 2 |\nafter";
  expect(render(text)).toEqual(["before", "", "a  long name", "x  1 | 2", "after"]);
  expect(render(text, 6).join(" ")).toContain("|---|:");
});

test("renders nothing without a terminal", () => {
  expect(render("# a **b**\n\n| c |", Number.POSITIVE_INFINITY)).toEqual(["# a **b**", "| c |"]);
});

test("loses nothing but signs and spaces", () => {
  const letters = (text: string) => text.replace(/[^a-z]/g, "");
  const words = fc.array(fc.constantFrom("ab", "**", "*", "`", " ", "\n", "- ", "# ", "> ", "c d", "|", "é", "漢", "\u001b[2J"), {
    maxLength: 40,
  });
  fc.assert(
    fc.property(words, (pieces) => {
      const text = pieces.join("").replaceAll("```", "``");
      const rows = render(text, 10);
      expect(letters(rows.join(""))).toBe(letters(text.replaceAll("\u001b[2J", "")));
      expect(rows.join("")).not.toContain("\u001b");
    }),
  );
});
