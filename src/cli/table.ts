import { Line, line } from "./line.ts";

export type Cell = string | Line;

/** Columns as wide as their widest cell, two spaces apart; the last one is not padded. */
export function table(rows: readonly (readonly Cell[])[]): Line[] {
  const widths: number[] = [];
  const shown = rows.map((row) => row.map((cell) => line`${cell}`));
  for (const row of shown) for (const [index, cell] of row.entries()) widths[index] = Math.max(widths[index] ?? 0, cell.width);
  return shown.map((row) =>
    Line.of(row.flatMap((cell, index) => (index === row.length - 1 ? [cell] : [cell, " ".repeat((widths[index] ?? 0) - cell.width + 2)]))),
  );
}
