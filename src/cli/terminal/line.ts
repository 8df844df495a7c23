import { displayWidth, plainText, visibleText } from "./plain-text.ts";

type Mark = keyof typeof markCodes;
const markCodes = { bold: 1, dim: 2, italic: 3, good: 32, bad: 31, code: 36 } as const;

interface Span {
  text: string;
  marks: readonly Mark[];
}

export type Piece = string | number | Line;

/**
 * One line for people, and the only kind of text that reaches a terminal of ours. A string becomes part of it with
 * everything that a terminal would obey, a line break included, made visible; so a name or a message from inside can
 * neither colour, erase nor imitate anything. A class, so that no string passes for one.
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

  /** A line that was put into a string by mistake would be no line any more, and unreadable. */
  [Symbol.toPrimitive](): never {
    throw new TypeError("a line is not a string");
  }

  /** Without colours, as it goes into files and pipes. */
  get text(): string {
    return this.#spans.map(({ text }) => text).join("");
  }

  /** Columns it takes on a terminal. */
  get width(): number {
    return displayWidth(this.text);
  }

  /** With colours. */
  get styled(): string {
    return this.#spans
      .map(({ text, marks }) => (marks.length === 0 ? text : `\x1b[${marks.map((mark) => markCodes[mark]).join(";")}m${text}\x1b[0m`))
      .join("");
  }
}

/** line`caisson: left out ${name}`: what is put in is text, whatever characters it has. */
export function line(strings: TemplateStringsArray, ...pieces: readonly Piece[]): Line {
  return Line.of(strings.flatMap((text, index) => [text, ...pieces.slice(index, index + 1)]));
}

/**
 * Text of several lines: a report of ours, a model's words, a program's output. Its line breaks count; colours and the
 * like are left out.
 */
export function lines(text: string): Line[] {
  return plainText(text)
    .replace(/\n$/, "")
    .split("\n")
    .map((each) => Line.of([each]));
}

/**
 * A message of several lines stays one message: all but its first are set in, so that none looks like another message.
 */
export function messageLines(message: string): Line[] {
  return message.split("\n").map((each, index) => (index === 0 ? line`${each}` : line`  ${each}`));
}

export const bold = (...pieces: readonly Piece[]): Line => Line.of(pieces, "bold");
export const dim = (...pieces: readonly Piece[]): Line => Line.of(pieces, "dim");
export const italic = (...pieces: readonly Piece[]): Line => Line.of(pieces, "italic");
export const code = (...pieces: readonly Piece[]): Line => Line.of(pieces, "code");
export const good = (...pieces: readonly Piece[]): Line => Line.of(pieces, "good");
export const bad = (...pieces: readonly Piece[]): Line => Line.of(pieces, "bad");

export function joined(pieces: readonly Piece[], separator: string): Line {
  return Line.of(pieces.flatMap((piece, index) => (index === 0 ? [piece] : [separator, piece])));
}

/** A file's name; in quotes, with its unusual characters escaped, where it could be taken for something else. */
export function quotedName(name: string): Line {
  const shown = visibleText(name);
  if (shown === name && !/["\\]|^\s|\s$|^$/u.test(name)) return Line.of([name]);
  return Line.of([`"${visibleText(name.replaceAll("\\", "\\\\").replaceAll('"', '\\"'))}"`]);
}
