import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

/**
 * Draws the README's picture of a terminal from the screens of the walk (test/e2e/walk.e2e.test.ts):
 *  node scripts/terminal-picture.ts
 */

const root = join(import.meta.dirname, "..");
export const picturePath = join(root, "docs", "first-hour.svg");

/** The screens, and which of their commands to show. */
const SHOWN: readonly { screen: string; commands: readonly string[] }[] = [
  { screen: "run", commands: ["caisson run"] },
  { screen: "changes", commands: ["caisson diff", "caisson apply"] },
  { screen: "exec", commands: ["caisson exec -- rm", "ls -A", "caisson exec -- cat"] },
];

const FONT_PX = 13;
const COLUMN_PX = 7.8;
const ROW_PX = 18;
const MARGIN_PX = 18;
const TITLE_PX = 34;

export function readmePicture(): string {
  const rows = SHOWN.flatMap(({ screen, commands }) => {
    const text = readFileSync(join(root, "test", "e2e", "walk", `${screen}.txt`), "utf8");
    return commands.flatMap((command) => [...outputOf(text, command), ""]);
  });
  return terminalPicture(
    rows.slice(0, -1),
    "A session in a terminal: an agent fixes a test, asks before it pushes, and its changes are applied",
  );
}

/** Returns the rows of one command on a screen: its prompt, and all rows up to the next prompt. */
export function outputOf(screen: string, command: string): string[] {
  const rows = screen.trimEnd().split("\n");
  const first = rows.findIndex((row) => row.startsWith(`$ ${command}`));
  if (first === -1) throw new Error(`no prompt on the screen contains: ${command}`);
  const length = rows.slice(first + 1).findIndex((row) => row.startsWith("$ "));
  return rows.slice(first, length === -1 ? rows.length : first + 1 + length);
}

/** Returns a dark terminal with these rows. Letters are as wide as their columns in any font. */
export function terminalPicture(rows: readonly string[], title: string): string {
  const width = Math.ceil(Math.max(...rows.map((row) => row.length)) * COLUMN_PX + 2 * MARGIN_PX);
  const height = TITLE_PX + rows.length * ROW_PX + MARGIN_PX;
  const lights = ["#ff5f57", "#febc2e", "#28c840"].map(
    (fill, at) => `<circle cx="${MARGIN_PX + 4 + at * 20}" cy="17" r="6" fill="${fill}"/>`,
  );
  return `${[
    `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}" role="img">`,
    `<title>${escaped(title)}</title>`,
    `<rect width="${width}" height="${height}" rx="8" fill="#15181e"/>`,
    ...lights,
    `<g font-family="ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace" font-size="${FONT_PX}" xml:space="preserve">`,
    ...rows.flatMap((row, at) => (row === "" ? [] : [rowPicture(row, TITLE_PX + (at + 1) * ROW_PX - 5)])),
    "</g>",
    "</svg>",
  ].join("\n")}\n`;
}

function rowPicture(row: string, y: number): string {
  const text = row.trimStart();
  const indent = row.length - text.length;
  const place = `x="${MARGIN_PX + round(indent * COLUMN_PX)}" y="${y}" textLength="${round(text.length * COLUMN_PX)}"`;
  return `<text ${place} fill="${colourOf(row)}"${row.startsWith("$ ") ? ' font-weight="bold"' : ""}>${escaped(text)}</text>`;
}

/** Returns a row's color, which depends on how the row begins. Color alone never distinguishes rows. */
function colourOf(row: string): string {
  if (row.startsWith("$ ")) return "#ffffff";
  if (/^(?:✓|\+)/.test(row)) return "#7ddc8b";
  if (/^(?:✗|-)/.test(row)) return "#ff8a80";
  if (/^(?:\?|@@)/.test(row)) return "#f5c86b";
  if (/^(?:step |coder |sandbox |diff |index |caisson: )/.test(row)) return "#8b95a5";
  return "#d5dae2";
}

const round = (px: number): number => Math.round(px * 10) / 10;
const escaped = (text: string): string => text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");

if (import.meta.main) writeFileSync(picturePath, readmePicture());
