import { displayWidth, visibleText } from "../terminal/plain-text.ts";
import { charactersOf, type EditedText } from "./edit-text.ts";

export interface InputRows {
  /** Rows that fit the width, with control characters escaped. */
  rows: string[];
  cursor: { row: number; column: number };
  /** The number of rows above and below that did not fit. */
  hiddenAbove: number;
  hiddenBelow: number;
}

const TAB = "    ";

/** Wraps the input into terminal rows and locates the cursor in them. */
export function inputRows(edited: EditedText, size: { columns: number; rowsMax: number }): InputRows {
  const { text, cursor } = edited;
  const columns = Math.max(1, size.columns);
  const rows: string[] = [];
  let row = "";
  let width = 0;
  let place = { row: 0, column: 0 };
  const breakRow = () => {
    rows.push(row);
    row = "";
    width = 0;
  };
  let at = 0;
  for (const character of charactersOf(text)) {
    const isBreak = character === "\n" || character === "\r\n";
    const displayText = isBreak ? "" : character === "\t" ? TAB : visibleText(character);
    const pieces = displayWidth(displayText) <= columns ? [displayText] : [...displayText];
    for (const [index, piece] of pieces.entries()) {
      if (width + displayWidth(piece) > columns) breakRow();
      if (at === cursor && index === 0) place = { row: rows.length, column: width };
      row += piece;
      width += displayWidth(piece);
    }
    if (isBreak) breakRow();
    at += character.length;
  }
  if (cursor >= at) {
    // The cursor stands where the next character will go, so there must be room for one.
    if (width >= columns) breakRow();
    place = { row: rows.length, column: width };
  }
  rows.push(row);
  return windowOf(rows, place, Math.max(1, size.rowsMax));
}

/** Returns the rows around the cursor. */
function windowOf(rows: readonly string[], cursor: { row: number; column: number }, rowsMax: number): InputRows {
  const first = Math.max(0, Math.min(cursor.row - Math.floor(rowsMax / 2), rows.length - rowsMax));
  const visibleRows = rows.slice(first, first + rowsMax);
  return {
    rows: visibleRows,
    cursor: { row: cursor.row - first, column: cursor.column },
    hiddenAbove: first,
    hiddenBelow: rows.length - first - visibleRows.length,
  };
}
