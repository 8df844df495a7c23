/**
 * Removes escape sequences, control characters and bidirectional marks from a model's or sandbox's text, because they
 * could make a terminal show something false.
 */
export function plainText(text: string): string {
  return text
    .replace(SEQUENCES, "")
    .replaceAll("\t", "    ")
    .replace(CONTROLS, (character) => (character === "\n" ? "\n" : ""));
}

/**
 * Escapes the same characters (`\n`, `\x1b`, `\u202e`) instead of removing them: for names and contents, where the user
 * has to see that they are there.
 */
export function visibleText(text: string): string {
  if (PRINTABLE.test(text)) return text;
  return text.replace(CONTROLS, (character) => SHORT_ESCAPES[character] ?? escapeCharacter(character));
}

/** Formats a value as JSON without control characters, because people may see it. */
export function visibleJson(value: unknown, indent?: number): string {
  const json = JSON.stringify(value, null, indent) ?? "null";
  // After JSON.stringify, control characters remain only within strings, except for the line breaks of an indented
  // text.
  return json.replace(CONTROLS, (character) =>
    character === "\n" ? "\n" : [...Array(character.length).keys()].map((index) => unicodeEscape(character.charCodeAt(index))).join(""),
  );
}

/** Text whose characters each take one column and need no escape, as in most text. */
const PRINTABLE = /^[\x20-\x7e]*$/;
// biome-ignore lint/suspicious/noControlCharactersInRegex: these are the characters to leave out.
const SEQUENCES = /\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)?|\x1b[P^_X][^\x1b]*(?:\x1b\\)?|(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]?|\x1b[ -/]*[0-~]?/g;
/** Control characters, bidirectional marks, line separators, surrogates, and invisible characters. */
const CONTROLS =
  /[\p{Cc}\p{Cs}\p{Zl}\p{Zp}\u061c\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\u{e0000}-\u{e007f}]/gu;
const SHORT_ESCAPES: Readonly<Record<string, string>> = { "\n": "\\n", "\r": "\\r", "\t": "\\t" };

function escapeCharacter(character: string): string {
  const code = character.codePointAt(0) ?? 0;
  if (code < 0x100) return `\\x${code.toString(16).padStart(2, "0")}`;
  return code < 0x10000 ? unicodeEscape(code) : `\\u{${code.toString(16)}}`;
}

function unicodeEscape(code: number): string {
  return `\\u${code.toString(16).padStart(4, "0")}`;
}

/** Returns the number of columns on a terminal. Wide characters take two, combining marks none. */
export function displayWidth(text: string): number {
  if (PRINTABLE.test(text)) return text.length;
  let width = 0;
  for (const character of text) width += characterWidth(character);
  return width;
}

function characterWidth(character: string): number {
  const code = character.codePointAt(0) ?? 0;
  if (code < 0x300) return 1;
  if (/\p{M}|\u200d|\ufe0f/u.test(character)) return 0;
  return WIDE.test(character) ? 2 : 1;
}

const WIDE =
  /[\u1100-\u115f\u2e80-\u303e\u3041-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff01-\uff60\uffe0-\uffe6]|\p{Emoji_Presentation}/u;

/** Cuts a text to a number of columns, and marks the cut. */
export function cutToWidth(text: string, columns: number): string {
  if (displayWidth(text) <= columns) return text;
  let width = 0;
  let prefix = "";
  for (const character of text) {
    width += characterWidth(character);
    if (width > columns - 1) break;
    prefix += character;
  }
  return `${prefix}…`;
}

/** Wraps a text, at word boundaries if possible. */
export function wrapText(text: string, columns: number): string[] {
  const rows: string[] = [];
  let row = "";
  let rowWidth = 0;
  for (const word of text.split(/(?<= )/)) {
    const letters = word.trimEnd();
    const width = displayWidth(letters);
    if (row !== "" && rowWidth + width > columns) {
      rows.push(row.trimEnd());
      row = "";
      rowWidth = 0;
    }
    const pieces = width > columns ? piecesOf(letters, columns) : [letters];
    for (const piece of pieces.slice(0, -1)) rows.push(piece);
    const rest = (pieces.at(-1) ?? "") + word.slice(letters.length);
    row += rest;
    rowWidth += displayWidth(rest);
  }
  return [...rows, row.trimEnd()];
}

/** Splits a word into pieces that fit; a character that is too wide forms its own piece. */
function piecesOf(word: string, columns: number): string[] {
  const pieces: string[] = [];
  let piece = "";
  let width = 0;
  for (const character of word) {
    const more = characterWidth(character);
    if (piece !== "" && width + more > columns) {
      pieces.push(piece);
      piece = "";
      width = 0;
    }
    piece += character;
    width += more;
  }
  return [...pieces, piece];
}
