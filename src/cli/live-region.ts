import { stripVTControlCharacters } from "node:util";
import type { Output } from "./output.ts";
import { displayWidth } from "./plain-text.ts";

const DRAW_MS = 100;

/**
 * Rows that are drawn again and again below what is printed, and leave nothing behind: before anything is printed, and at the end, they are taken away.
 * Nothing at all where there is no terminal.
 */
export function createLiveRegion(output: Output, options: { wanted: boolean; rows: (columns: number) => string[] }) {
  const shown = options.wanted && output.isTerminal;
  let widths: number[] = [];

  /** Rows that were drawn before the window became narrower have been broken by the terminal, and take more rows now. */
  const takeAway = (): string => {
    if (widths.length === 0) return "";
    const { cols } = output.size();
    const rows = widths.reduce((sum, width) => sum + Math.max(1, Math.ceil(width / cols)), 0);
    widths = [];
    return `\r${rows > 1 ? `\x1b[${rows - 1}A` : ""}\x1b[J`;
  };
  const drawing = (): string => {
    const rows = options.rows(output.size().cols);
    widths = rows.map((row) => displayWidth(stripVTControlCharacters(row)));
    return rows.join("\n");
  };
  const redraw = () => {
    if (!output.pending()) void output.write(takeAway() + drawing());
  };
  const timer = shown ? setInterval(redraw, DRAW_MS) : undefined;
  return {
    async print(lines: readonly string[]): Promise<void> {
      const text = lines.length > 0 ? `${lines.join("\n")}\n` : "";
      if (!shown) await output.write(text);
      else await output.write(takeAway() + text + drawing());
    },
    async close(): Promise<void> {
      clearInterval(timer);
      if (shown) await output.write(takeAway());
    },
  };
}
