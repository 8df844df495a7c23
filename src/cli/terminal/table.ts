import { Line } from "./line.ts";

export type Cell = string | Line;

/** Columns as wide as their widest cell, two spaces apart; the last one is not padded. */
export function table(rows: readonly (readonly Cell[])[]): Line[] {
  const shown = rows.map((row) =>
    row.map((cell) => {
      const text = cell instanceof Line ? cell : Line.of([cell]);
      return { text, width: text.width };
    }),
  );
  const widths: number[] = [];
  for (const row of shown) for (const [index, { width }] of row.entries()) widths[index] = Math.max(widths[index] ?? 0, width);
  return shown.map((row) =>
    Line.of(
      row.flatMap(({ text, width }, index) => (index === row.length - 1 ? [text] : [text, " ".repeat((widths[index] ?? 0) - width + 2)])),
    ),
  );
}
