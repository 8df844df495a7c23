import type { Line } from "../terminal/line.ts";
import type { Output } from "../terminal/output.ts";

/** The rows below the printed output. Each fits the width. */
export interface Footer {
  rows: readonly Line[];
  cursor: { row: number; column: number };
}

export interface Screen {
  print(lines: readonly Line[]): Promise<void>;
  /** Redraws the footer. If the terminal is slow, this happens after it has accepted the earlier output. */
  redraw(): void;
  /** Clears the screen and redraws the footer. */
  clear(): void;
  /** Removes the footer. */
  close(): Promise<void>;
}

/** The terminal of a chat: printed lines scroll up, and a footer below is redrawn in place. */
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
 * Counts the rows from the top of a footer to its cursor. If the window became narrower since they were drawn, the
 * terminal has wrapped them, so they occupy more rows now.
 */
export function rowsToCursor(footer: { rows: readonly Pick<Line, "width">[]; cursor: Footer["cursor"] } | null, cols: number): number {
  if (footer === null) return 0;
  const { rows, cursor } = footer;
  const above = rows.slice(0, cursor.row).reduce((sum, { width }) => sum + Math.max(1, Math.ceil(width / cols)), 0);
  return above + Math.floor(cursor.column / cols) + 1;
}
