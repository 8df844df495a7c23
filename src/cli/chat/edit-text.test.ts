import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { displayWidth } from "../terminal/plain-text.ts";
import * as edit from "./edit-text.ts";
import { inputRows } from "./input-rows.ts";

const characters = fc.constantFrom("a", " ", "\n", "e\u0301", "日", "👩‍👩‍👧", "\u0301", "🇩", "🇪", "\t", "\u001b", "\u202e", "\ud800");
const anyText = fc.array(characters, { maxLength: 30 }).map((all) => all.join(""));
const edits = [
  edit.moveLeft,
  edit.moveRight,
  edit.moveHome,
  edit.moveEnd,
  edit.moveWordLeft,
  edit.moveWordRight,
  edit.deleteLeft,
  edit.deleteRight,
  edit.deleteWordLeft,
  edit.deleteToStart,
  edit.deleteToEnd,
  (edited: edit.EditedText) => edit.moveLine(edited, -1) ?? edited,
  (edited: edit.EditedText) => edit.moveLine(edited, 1) ?? edited,
];
const anyEdit = fc.oneof(
  characters.map((words) => edit.insert(words)),
  fc.constantFrom(...edits),
);

/** Returns every position between two characters. */
function boundaries(text: string): Set<number> {
  const all = new Set([0]);
  let at = 0;
  for (const character of text.split(/(?<=\n)/).flatMap(edit.charactersOf)) {
    at += character.length;
    all.add(at);
  }
  return all;
}

describe("edited text", () => {
  test("keeps the cursor out of the middle of a character", () => {
    fc.assert(
      fc.property(fc.array(anyEdit, { maxLength: 40 }), (all) => {
        let edited = edit.emptyText;
        for (const change of all) {
          edited = change(edited);
          expect(boundaries(edited.text)).toContain(edited.cursor);
        }
      }),
    );
  });

  test("treats a letter with its marks, and a family emoji, as one character", () => {
    expect(edit.deleteLeft(edit.withText("ae\u0301"))).toEqual({ text: "a", cursor: 1 });
    expect(edit.deleteLeft(edit.withText("a👩‍👩‍👧"))).toEqual({ text: "a", cursor: 1 });
    expect(edit.moveLeft(edit.withText("日本"))).toEqual({ text: "日本", cursor: 1 });
    // A mark after a space belongs to the space.
    expect(edit.moveWordLeft(edit.withText("a \u0301b")).cursor).toBe(1);
  });

  test("keeps the column when the cursor moves between lines", () => {
    const edited = edit.withText("long line\nab\nlong");
    const up = edit.moveLine(edited, -1);
    expect(up?.cursor).toBe("long line\nab".length);
    expect(edit.moveLine(up as edit.EditedText, -1)?.cursor).toBe(2);
    expect(edit.moveLine(edited, 1)).toBeNull();
  });
});

describe("input rows", () => {
  test("fit the width, contain the cursor, and hold no control characters", () => {
    fc.assert(
      fc.property(anyText, fc.integer({ min: 6, max: 20 }), fc.integer({ min: 1, max: 5 }), fc.nat(), (text, columns, rowsMax, place) => {
        const all = [...boundaries(text)];
        const { rows, cursor } = inputRows({ text, cursor: all[place % all.length] ?? 0 }, { columns, rowsMax });
        expect(rows.length).toBeLessThanOrEqual(rowsMax);
        for (const row of rows) {
          expect(displayWidth(row)).toBeLessThanOrEqual(columns);
          expect(row).not.toMatch(/[\p{Cc}\p{Cs}\u202e]/u);
        }
        expect(cursor.row).toBeLessThan(rows.length);
        expect(cursor.column).toBeLessThanOrEqual(columns);
      }),
    );
  });

  test("put the cursor where the next character goes", () => {
    const at = (text: string, cursor = text.length) => inputRows({ text, cursor }, { columns: 4, rowsMax: 9 });
    expect(at("abcd")).toMatchObject({ rows: ["abcd", ""], cursor: { row: 1, column: 0 } });
    expect(at("abc日")).toMatchObject({ rows: ["abc", "日"], cursor: { row: 1, column: 2 } });
    expect(at("ab\ncd", 2)).toMatchObject({ rows: ["ab", "cd"], cursor: { row: 0, column: 2 } });
  });
});
