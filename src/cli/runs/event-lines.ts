import type { RunEvent } from "../../contract/run/run-event.ts";
import { bad, good, type Line, line, lines, type Piece, quotedName } from "../terminal/line.ts";
import { cutToWidth, plainText } from "../terminal/plain-text.ts";

/** The number of lines shown of a tool's output; the rest is only in the log. */
const FOLDED_LINES = 6;
export const TEXT_COLUMNS_MAX = 100;
const OUTPUT_COLUMNS_MAX = 160;

/** Puts a text after its mark. Continuation lines are indented, so that none looks like a separate entry. */
export function linesWithMark(mark: Line, text: string, note: Piece): Line[] {
  const rows = lines(text);
  return rows.map(
    (row, index) => line`${index === 0 ? mark : "    "}${row}${index === rows.length - 1 && note !== "" ? line` ${note}` : ""}`,
  );
}

export function fileLine(data: Extract<RunEvent, { type: "file.changed" }>["data"]): Line {
  const counts = data.linesAdded === null ? "" : line` ${good(`+${data.linesAdded}`)} ${bad(`−${data.linesRemoved ?? 0}`)}`;
  return line`    ${data.kind} ${quotedName(data.path)}${counts}`;
}

/** Returns the most informative argument of a call. */
export function aboutCall(args: unknown): string {
  if (typeof args !== "object" || args === null) return "";
  const values = args as Record<string, unknown>;
  const first = ["command", "path", "pattern", "agent", "id", "args"].map((key) => values[key]).find((value) => value !== undefined);
  const text = Array.isArray(first) ? first.join(" ") : typeof first === "string" ? first : "";
  return cutToWidth(plainText(text.split("\n")[0] ?? ""), TEXT_COLUMNS_MAX);
}

export function fold(text: string, columns: number): string[] {
  const lines = plainText(text).trimEnd().split("\n");
  const shownLines =
    lines.length <= FOLDED_LINES ? lines : [`… ${lines.length - FOLDED_LINES + 1} lines`, ...lines.slice(-FOLDED_LINES + 1)];
  return shownLines
    .filter((line) => line.trim() !== "")
    .map((line) => cutToWidth(line.trimEnd(), Math.min(columns - 2, OUTPUT_COLUMNS_MAX)));
}
