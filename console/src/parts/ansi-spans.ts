import { visibleLines } from "./visible-text.ts";

/** A piece of output with the style that its program set. */
export interface AnsiSpan {
  text: string;
  /** `rgb` numbers such as `187, 0, 0`, or null for the page's own color. */
  color: string | null;
  background: string | null;
  isBold: boolean;
  isDim: boolean;
  isItalic: boolean;
  isUnderlined: boolean;
}

/** Longer output is cut, with a note, because the page has other cards to draw. */
const CHARACTERS_MAX = 500_000;
/** The maximum number of styled pieces. The rest becomes one piece without styles. */
const SPANS_MAX = 5_000;
/** The most numbers in one sequence; a color needs five. */
const NUMBERS_MAX = 32;

type Style = Omit<AnsiSpan, "text">;
const plain: Style = { color: null, background: null, isBold: false, isDim: false, isItalic: false, isUnderlined: false };

const basic = ["0, 0, 0", "187, 0, 0", "0, 187, 0", "187, 187, 0", "0, 0, 187", "187, 0, 187", "0, 187, 187", "255, 255, 255"];
const bright = ["85, 85, 85", "255, 85, 85", "0, 255, 0", "255, 255, 85", "85, 85, 255", "255, 85, 255", "85, 255, 255", "255, 255, 255"];

/**
 * Takes only colors and weights from output. Drops everything else that is not text, or makes it visible. Output may be
 * hostile and its lines long, so this examines each character a bounded number of times.
 */
export function ansiSpans(output: string): AnsiSpan[] {
  const text = overwritten(withoutCommands(cut(output)));
  const spans: AnsiSpan[] = [];
  let style = plain;
  let at = 0;
  while (at < text.length && spans.length < SPANS_MAX) {
    const found = text.indexOf("\u001b[", at);
    const end = found < 0 ? text.length : found;
    if (end > at) spans.push({ ...style, text: visibleLines(text.slice(at, end)) });
    if (found < 0) return spans;
    const after = endOfNumbers(text, end + 2);
    at = text[after] === "m" ? after + 1 : after;
    if (text[after] === "m") style = applyCodes(style, text.slice(end + 2, after));
  }
  if (at < text.length) spans.push({ ...plain, text: visibleLines(text.slice(at).replaceAll(weights, "")) });
  return spans;
}

function cut(output: string): string {
  if (output.length <= CHARACTERS_MAX) return output;
  return `${output.slice(0, CHARACTERS_MAX)}\n… ${output.length - CHARACTERS_MAX} more characters`;
}

const esc = "\\u001b";
/** Sequences for anything but colors: cursor, titles, links, devices. A terminal would obey them; a page does not. */
const commands = new RegExp(
  [
    `${esc}\\][^\\u0007${esc}]*(?:\\u0007|${esc}\\\\)?`,
    `${esc}[PX^_][^${esc}]*(?:${esc}\\\\)?`,
    `${esc}\\[[0-9;?<=>!]*[ -/]*(?!m)[@-~]`,
    `${esc}[()][A-Z0-9]`,
    `${esc}[=>78cDEHMNOZ]`,
  ].join("|"),
  "g",
);
const weights = new RegExp(`${esc}\\[[0-9;]*m?`, "g");

const withoutCommands = (text: string) => text.replace(commands, "");

/** Drops the parts of lines that a carriage return overwrites. */
function overwritten(text: string): string {
  if (!text.includes("\r")) return text;
  const lines = text.split("\n").map((line) => (line.length < 2 ? line : line.slice(line.lastIndexOf("\r", line.length - 2) + 1)));
  return lines.join("\n");
}

function endOfNumbers(text: string, from: number): number {
  let at = from;
  while ((text[at] ?? "") >= "0" && (text[at] ?? "") <= ";" && text[at] !== ":") at += 1;
  return at;
}

function applyCodes(before: Style, numbers: string): Style {
  const style = { ...before };
  const codes = numbers
    .slice(0, NUMBERS_MAX * 4)
    .split(";", NUMBERS_MAX)
    .map(Number);
  for (let index = 0; index < codes.length; index += 1) {
    const code = codes[index] ?? 0;
    if (code === 38 || code === 48) {
      const { color, length } = parseColor(codes.slice(index + 1, index + 5));
      if (color !== null) style[code === 38 ? "color" : "background"] = color;
      index += length;
    } else Object.assign(style, changeBy(code));
  }
  return style;
}

function changeBy(code: number): Partial<Style> {
  if (code === 0) return plain;
  if (code === 1) return { isBold: true };
  if (code === 2) return { isDim: true };
  if (code === 3) return { isItalic: true };
  if (code === 4) return { isUnderlined: true };
  if (code === 21) return { isBold: false };
  if (code === 22) return { isBold: false, isDim: false };
  if (code === 23) return { isItalic: false };
  if (code === 24) return { isUnderlined: false };
  if (code === 39) return { color: null };
  if (code === 49) return { background: null };
  if (code >= 30 && code < 38) return { color: basic[code - 30] ?? null };
  if (code >= 90 && code < 98) return { color: bright[code - 90] ?? null };
  if (code >= 40 && code < 48) return { background: basic[code - 40] ?? null };
  if (code >= 100 && code < 108) return { background: bright[code - 100] ?? null };
  return {};
}

/** Parses `5;n` of the palette, or `2;r;g;b`; `length` is how many numbers it used. */
function parseColor([mode, ...rest]: readonly number[]): { color: string | null; length: number } {
  const isByte = (value: number | undefined): value is number => Number.isInteger(value) && Number(value) >= 0 && Number(value) <= 255;
  if (mode === 5) return { color: isByte(rest[0]) ? ofPalette(rest[0]) : null, length: 2 };
  if (mode === 2) return { color: rest.length === 3 && rest.every(isByte) ? rest.join(", ") : null, length: 4 };
  return { color: null, length: 1 };
}

/** Looks up one of the usual 256 colors: 16 named ones, a cube of 6 × 6 × 6, and 24 grays. */
function ofPalette(index: number): string {
  if (index < 8) return basic[index] ?? "";
  if (index < 16) return bright[index - 8] ?? "";
  if (index >= 232) return Array.from({ length: 3 }, () => 8 + (index - 232) * 10).join(", ");
  const level = (value: number) => (value === 0 ? 0 : 55 + value * 40);
  return [Math.floor((index - 16) / 36), Math.floor((index - 16) / 6) % 6, (index - 16) % 6].map(level).join(", ");
}
