import type { Line } from "../terminal/line.ts";
import type { Output } from "../terminal/output.ts";

/** What stands below everything that is printed. Each row fits. */
export interface Footer {
  rows: readonly Line[];
  cursor: { row: number; column: number };
}

export interface Screen {
  print(lines: readonly Line[]): Promise<void>;
  /** Draws the rows below again, now or, while the terminal is slow, once it has taken what came before. */
  redraw(): void;
  /** The same on an empty screen. */
  clear(): void;
  /** Takes the rows below away. */
  close(): Promise<void>;
}

/** The terminal of a chat: what is said stays above, and a few rows below are drawn again and again. */
export function createScreen(output: Output, footer: (size: { cols: number; rows: number }) => Footer): Screen {
  let drawn: Footer | null = null;
  let painting = 0;
  let isStale = false;
  let isClosed = false;

  const paint = async (lines: readonly Line[]): Promise<void> => {
    const above = rowsToCursor(drawn, output.size().cols);
    const next = isClosed ? null : footer(output.size());
    drawn = next;
    isStale = false;
    painting++;
    await output.repaint({ above, lines, rows: next?.rows ?? [], ...(next === null ? {} : { cursor: next.cursor }) });
    painting--;
    if (isStale && painting === 0) void paint([]);
  };
  const redraw = () => {
    isStale = true;
    if (painting === 0 && !isClosed) void paint([]);
  };
  const stopWatching = output.onResize(redraw);
  return {
    print: paint,
    redraw,
    clear() {
      void output.clear();
      drawn = null;
      redraw();
    },
    async close() {
      stopWatching();
      isClosed = true;
      await paint([]);
    },
  };
}

/**
 * Rows from the first of a footer to that of its cursor. Rows that were drawn before the window became narrower have
 * been broken by the terminal, and take more rows now.
 */
export function rowsToCursor(footer: { rows: readonly Pick<Line, "width">[]; cursor: Footer["cursor"] } | null, cols: number): number {
  if (footer === null) return 0;
  const { rows, cursor } = footer;
  const above = rows.slice(0, cursor.row).reduce((sum, { width }) => sum + Math.max(1, Math.ceil(width / cols)), 0);
  return above + Math.floor(cursor.column / cols) + 1;
}
