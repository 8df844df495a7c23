import type { Line } from "./line.ts";
import type { Output } from "./output.ts";

const DRAW_MS = 100;

/**
 * Draws rows below the printed lines and redraws them regularly. They are removed before anything is printed, and at
 * the end. Does nothing without a terminal.
 */
export function createLiveRegion(output: Output, options: { wanted: boolean; rows: (columns: number) => Line[] }) {
  const isVisible = options.wanted && output.isTerminal;
  let drawn: readonly Line[] = [];

  /**
   * If the window became narrower since the rows were drawn, the terminal has wrapped them, so they occupy more rows
   * now.
   */
  const rowsDrawn = (): number => {
    const { cols } = output.size();
    return drawn.reduce((sum, row) => sum + Math.max(1, Math.ceil(row.width / cols)), 0);
  };
  const repaint = (lines: readonly Line[], rows: readonly Line[]) => {
    const above = rowsDrawn();
    drawn = rows;
    return output.repaint({ above, lines, rows });
  };
  const rowsNow = () => options.rows(output.size().cols);
  const redraw = () => {
    if (!output.pending()) void repaint([], rowsNow());
  };
  const timer = isVisible ? setInterval(redraw, DRAW_MS) : undefined;
  return {
    async print(lines: readonly Line[]): Promise<void> {
      // The timer redraws changed rows.
      if (lines.length === 0) return;
      if (!isVisible) await output.print(lines);
      else await repaint(lines, rowsNow());
    },
    async close(): Promise<void> {
      clearInterval(timer);
      if (isVisible) await repaint([], []);
    },
  };
}
