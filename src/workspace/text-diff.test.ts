import fc from "fast-check";
import { expect, test } from "vitest";
import { tries } from "../../test/support/thorough.ts";
import { diffLines, type Piece } from "./text-diff.ts";

const side = (pieces: readonly Piece[], without: "-" | "+") => pieces.flatMap((piece) => (piece.sign === without ? [] : piece.lines));
const lines = fc.array(fc.constantFrom("a\n", "b\n", "c\n", "d\n", "\n"), { maxLength: 40 });
const changed = (pieces: readonly Piece[]) => pieces.reduce((sum, { sign, lines }) => (sign === " " ? sum : sum + lines.length), 0);

test("returns pieces that add up to the old and to the new text", () => {
  fc.assert(
    fc.property(lines, lines, (before, after) => {
      const pieces = diffLines(before, after);
      expect(side(pieces, "+")).toEqual(before);
      expect(side(pieces, "-")).toEqual(after);
      for (const [index, piece] of pieces.entries()) {
        expect(piece.lines.length).toBeGreaterThan(0);
        expect(pieces[index + 1]?.sign).not.toBe(piece.sign);
      }
    }),
    { numRuns: tries(1000) },
  );
});

test("finds the shortest edit", () => {
  fc.assert(
    fc.property(lines, lines, (before, after) => {
      expect(changed(diffLines(before, after))).toBe(before.length + after.length - 2 * longestShared(before, after));
    }),
    { numRuns: tries(300) },
  );
});

test("compares long texts, and texts that share nothing, in bounded time", () => {
  const many = Array.from({ length: 100_000 }, (_, index) => `${index}\n`);
  expect(changed(diffLines(many, [...many.slice(0, 1000), "new\n", ...many.slice(1000)]))).toBe(1);
  const others = many.map((line) => `x${line}`);
  const pieces = diffLines(many, others);
  expect(side(pieces, "+")).toEqual(many);
  expect(side(pieces, "-")).toEqual(others);
});

function longestShared(a: readonly string[], b: readonly string[]): number {
  let row = new Array<number>(b.length + 1).fill(0);
  for (const line of a) {
    const next = [0];
    for (let at = 0; at < b.length; at++) next.push(line === b[at] ? (row[at] ?? 0) + 1 : Math.max(row[at + 1] ?? 0, next[at] ?? 0));
    row = next;
  }
  return row.at(-1) ?? 0;
}
