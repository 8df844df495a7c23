import type { Line } from "./line.ts";
import type { Output } from "./output.ts";

const DRAW_MS = 100;

/**
 * Rows that are drawn again and again below what is printed, and leave nothing behind: before anything is printed, and
 * at the end, they are taken away. Nothing at all where there is no terminal.
 */
export function createLiveRegion(output: Output, options: { wanted: boolean; rows: (columns: number) => Line[] }) {
  const shown = options.wanted && output.isTerminal;
  let drawn: readonly Line[] = [];

  /**
   * Rows that were drawn before the window became narrower have been broken by the terminal, and take more rows now.
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
  const timer = shown ? setInterval(redraw, DRAW_MS) : undefined;
  return {
    async print(lines: readonly Line[]): Promise<void> {
      // What changed below is drawn by the clock.
      if (lines.length === 0) return;
      if (!shown) await output.print(lines);
      else await repaint(lines, rowsNow());
    },
    async close(): Promise<void> {
      clearInterval(timer);
      if (shown) await repaint([], []);
    },
  };
}
