import { displayWidth, plainText, visibleText } from "./plain-text.ts";

type Mark = keyof typeof markCodes;
const markCodes = { bold: 1, dim: 2, italic: 3, good: 32, bad: 31, code: 36 } as const;

interface Span {
  text: string;
  marks: readonly Mark[];
}

export type Piece = string | number | Line;

/**
 * One line for people, and the only kind of text that reaches our terminal. In strings that become part of it, control
 * characters, including line breaks, are escaped. So a name or message from inside can neither color, erase nor imitate
 * anything. A class, so that no string is accepted as a line.
 */
export class Line {
  readonly #spans: readonly Span[];

  private constructor(spans: readonly Span[]) {
    this.#spans = spans;
  }

  static of(pieces: readonly Piece[], mark?: Mark): Line {
    const spans = pieces.flatMap((piece) => (piece instanceof Line ? piece.#spans : [{ text: visibleText(String(piece)), marks: [] }]));
    return new Line(mark === undefined ? spans : spans.map(({ text, marks }) => ({ text, marks: [mark, ...marks] })));
  }

  /** Throws, because a line interpolated into a string by mistake would lose its type and be unreadable. */
  [Symbol.toPrimitive](): never {
    throw new TypeError("a line is not a string");
  }

  /** The text without colors, for files and pipes. */
  get text(): string {
    return this.#spans.map(({ text }) => text).join("");
  }

  /** The number of columns on a terminal. */
  get width(): number {
    return displayWidth(this.text);
  }

  /** The text with colors. */
  get styled(): string {
    return this.#spans
      .map(({ text, marks }) => (marks.length === 0 ? text : `\x1b[${marks.map((mark) => markCodes[mark]).join(";")}m${text}\x1b[0m`))
      .join("");
  }
}

/**
 * Tags a template, such as line`caisson: left out ${name}`. Interpolated values are text, whatever characters they
 * contain.
 */
export function line(strings: TemplateStringsArray, ...pieces: readonly Piece[]): Line {
  return Line.of(strings.flatMap((text, index) => [text, ...pieces.slice(index, index + 1)]));
}

/** Splits a text such as a report, a model's answer or a program's output into lines. Control sequences are removed. */
export function lines(text: string): Line[] {
  return plainText(text)
    .replace(/\n$/, "")
    .split("\n")
    .map((each) => Line.of([each]));
}

/** Splits a message and indents all but its first line, so that none looks like another message. */
export function messageLines(message: string): Line[] {
  return message.split("\n").map((each, index) => (index === 0 ? line`${each}` : line`  ${each}`));
}

export const bold = (...pieces: readonly Piece[]): Line => Line.of(pieces, "bold");
export const dim = (...pieces: readonly Piece[]): Line => Line.of(pieces, "dim");
export const italic = (...pieces: readonly Piece[]): Line => Line.of(pieces, "italic");
export const code = (...pieces: readonly Piece[]): Line => Line.of(pieces, "code");
export const good = (...pieces: readonly Piece[]): Line => Line.of(pieces, "good");
export const bad = (...pieces: readonly Piece[]): Line => Line.of(pieces, "bad");

export function joinLines(pieces: readonly Piece[], separator: string): Line {
  return Line.of(pieces.flatMap((piece, index) => (index === 0 ? [piece] : [separator, piece])));
}

/** Returns a file name, quoted and escaped if it could be mistaken for something else. */
export function quotedName(name: string): Line {
  const visibleName = visibleText(name);
  if (visibleName === name && !/["\\]|^\s|\s$|^$/u.test(name)) return Line.of([name]);
  return Line.of([`"${visibleText(name.replaceAll("\\", "\\\\").replaceAll('"', '\\"'))}"`]);
}
