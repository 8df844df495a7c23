import { bad, dim, good, type Line, line } from "../terminal/line.ts";
import { cutToWidth, visibleText } from "../terminal/plain-text.ts";

/** The number of rows shown per call; `/diff` shows all. */
const ROWS_MAX = 12;
const INDENT = "    ";

/** Returns a short, colored diff of a call's file changes, as far as its arguments contain them. */
export function inlineDiff(tool: string, args: unknown, options: { columns: number }): Line[] {
  const rows = rowsOf(tool, args);
  const shownRows = rows.length > ROWS_MAX ? rows.slice(0, ROWS_MAX - 1) : rows;
  const more = rows.length - shownRows.length;
  const width = Math.max(1, options.columns - INDENT.length - 1);
  return [
    ...shownRows.map((row) => colorRow(cutToWidth(visibleText(row.replaceAll("\t", "    ")), width))),
    ...(more > 0 ? [dim(`${INDENT}… ${more} more lines: /diff`)] : []),
  ];
}

function colorRow(row: string): Line {
  if (row.startsWith("+")) return line`${INDENT}${good(row)}`;
  if (row.startsWith("-")) return line`${INDENT}${bad(row)}`;
  return dim(INDENT, row);
}

function rowsOf(tool: string, args: unknown): string[] {
  if (typeof args !== "object" || args === null) return [];
  const text = (name: string) => {
    const value = (args as Record<string, unknown>)[name];
    return typeof value === "string" ? value : null;
  };
  switch (tool) {
    case "edit":
      return changedRows(linesOf(text("old")), linesOf(text("new")));
    case "write":
      return linesOf(text("content")).map((row) => `+${row}`);
    case "apply_patch":
      return linesOf(text("patch")).filter((row) => /^[+\- @]/.test(row) && !/^(\+\+\+|---) /.test(row));
    default:
      return [];
  }
}

/** Lines that both texts begin or end with are unchanged and appear only once. */
function changedRows(old: readonly string[], fresh: readonly string[]): string[] {
  let start = 0;
  while (start < old.length && start < fresh.length && old[start] === fresh[start]) start++;
  let end = 0;
  while (end < old.length - start && end < fresh.length - start && old.at(-1 - end) === fresh.at(-1 - end)) end++;
  return [
    ...old.slice(0, start).map((row) => ` ${row}`),
    ...old.slice(start, old.length - end).map((row) => `-${row}`),
    ...fresh.slice(start, fresh.length - end).map((row) => `+${row}`),
    ...old.slice(old.length - end).map((row) => ` ${row}`),
  ];
}

function linesOf(text: string | null): string[] {
  return text === null || text === "" ? [] : text.replace(/\n$/, "").split("\n");
}
