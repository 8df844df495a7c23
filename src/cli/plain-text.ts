/**
 * Text that came from a model or a sandbox, for a person's terminal: without escape sequences, control characters and marks that turn the
 * direction of writing, all of which could make a screen lie.
 */
export function plainText(text: string): string {
  return text.replace(SEQUENCES, "").replaceAll("\t", "    ").replace(CONTROLS, "");
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: these are the characters to leave out.
const SEQUENCES = /\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)?|\x1b[P^_X][^\x1b]*(?:\x1b\\)?|(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]?|\x1b[ -/]*[0-~]?/g;
// biome-ignore lint/suspicious/noControlCharactersInRegex: the same.
const CONTROLS = /[\x00-\x09\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\u2028\u2029\ufeff]/g;

/** Columns a text takes on a terminal: wide characters take two, marks that combine none. */
export function displayWidth(text: string): number {
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

/** Cut to so many columns, with a mark where it was cut. */
export function cutToWidth(text: string, columns: number): string {
  if (displayWidth(text) <= columns) return text;
  let width = 0;
  let kept = "";
  for (const character of text) {
    width += characterWidth(character);
    if (width > columns - 1) break;
    kept += character;
  }
  return `${kept}…`;
}

/** At word boundaries where there are any. */
export function wrapText(text: string, columns: number): string[] {
  const rows: string[] = [];
  let row = "";
  for (const word of text.split(/(?<= )/)) {
    let rest = word;
    if (row !== "" && displayWidth(row + rest.trimEnd()) > columns) {
      rows.push(row.trimEnd());
      row = "";
    }
    while (displayWidth(rest.trimEnd()) > columns) {
      let piece = "";
      for (const character of rest) {
        if (displayWidth(piece + character) > columns) break;
        piece += character;
      }
      if (piece === "") break;
      rows.push(piece);
      rest = rest.slice(piece.length);
    }
    row += rest;
  }
  return [...rows, row.trimEnd()];
}
