import { Line } from "./line.ts";

export type Cell = string | Line;

/** Aligns cells in columns, two spaces apart. The last column is not padded. */
export function table(rows: readonly (readonly Cell[])[]): Line[] {
  const cells = rows.map((row) =>
    row.map((cell) => {
      const text = cell instanceof Line ? cell : Line.of([cell]);
      return { text, width: text.width };
    }),
  );
  const widths: number[] = [];
  for (const row of cells) for (const [index, { width }] of row.entries()) widths[index] = Math.max(widths[index] ?? 0, width);
  return cells.map((row) =>
    Line.of(
      row.flatMap(({ text, width }, index) => (index === row.length - 1 ? [text] : [text, " ".repeat((widths[index] ?? 0) - width + 2)])),
    ),
  );
}

/** Returns a table with headings, or nothing if there are no rows. */
export const tableOf = (headings: readonly Cell[], rows: readonly (readonly Cell[])[]): Line[] =>
  rows.length === 0 ? [] : table([headings, ...rows]);
