/** Text and a cursor, which is always between two characters as people see them. */
export interface EditedText {
  readonly text: string;
  /** The cursor's index into the text. */
  readonly cursor: number;
}

export type Edit = (edited: EditedText) => EditedText;

export const emptyText: EditedText = { text: "", cursor: 0 };

const characters = new Intl.Segmenter(undefined, { granularity: "grapheme" });

/** Splits text into characters as people see them: a letter with its marks is one. */
export function charactersOf(text: string): string[] {
  return [...characters.segment(text)].map(({ segment }) => segment);
}

export const withText = (text: string): EditedText => ({ text, cursor: text.length });

export const insert =
  (words: string): Edit =>
  ({ text, cursor }) => {
    const whole = text.slice(0, cursor) + words + text.slice(cursor);
    // The inserted text may combine with its neighbors into one character; then the cursor goes after it.
    return { text: whole, cursor: atBoundary(whole, cursor + words.length) };
  };

export const moveLeft: Edit = ({ text, cursor }) => ({ text, cursor: boundaryBefore(text, cursor) });
export const moveRight: Edit = ({ text, cursor }) => ({ text, cursor: boundaryAfter(text, cursor) });
export const moveHome: Edit = ({ text, cursor }) => ({ text, cursor: lineStart(text, cursor) });
export const moveEnd: Edit = ({ text, cursor }) => ({ text, cursor: lineEnd(text, cursor) });
export const moveWordLeft: Edit = ({ text, cursor }) => ({ text, cursor: wordBefore(text, cursor) });
export const moveWordRight: Edit = ({ text, cursor }) => {
  const ahead = /^\s*\S+/.exec(text.slice(cursor))?.[0].length ?? text.length - cursor;
  return { text, cursor: atBoundary(text, cursor + ahead) };
};

export const deleteLeft: Edit = (edited) => without(edited, boundaryBefore(edited.text, edited.cursor), edited.cursor);
export const deleteRight: Edit = (edited) => without(edited, edited.cursor, boundaryAfter(edited.text, edited.cursor));
export const deleteWordLeft: Edit = (edited) => without(edited, wordBefore(edited.text, edited.cursor), edited.cursor);
export const deleteToStart: Edit = (edited) => without(edited, lineStart(edited.text, edited.cursor), edited.cursor);
export const deleteToEnd: Edit = (edited) => without(edited, edited.cursor, lineEnd(edited.text, edited.cursor));

/** Moves to the line above or below, in the same column. Returns null if there is no such line. */
export function moveLine(edited: EditedText, by: -1 | 1): EditedText | null {
  const { text, cursor } = edited;
  const start = lineStart(text, cursor);
  const column = charactersOf(text.slice(start, cursor)).length;
  const target = by === -1 ? start - 1 : lineEnd(text, cursor) + 1;
  if (target < 0 || target > text.length) return null;
  const from = lineStart(text, target);
  const line = text.slice(from, lineEnd(text, from));
  return { text, cursor: from + charactersOf(line).slice(0, column).join("").length };
}

/** Removes the text from `from` to `to`. What remains around it may combine into one character. */
function without({ text }: EditedText, from: number, to: number): EditedText {
  const whole = text.slice(0, from) + text.slice(to);
  return { text: whole, cursor: atBoundary(whole, from) };
}

const lineStart = (text: string, cursor: number) => (cursor === 0 ? 0 : text.lastIndexOf("\n", cursor - 1) + 1);
const lineEnd = (text: string, cursor: number) => {
  const end = text.indexOf("\n", cursor);
  return end < 0 ? text.length : end;
};

function wordBefore(text: string, cursor: number): number {
  const before = text.slice(0, cursor).trimEnd();
  let at = before.length;
  while (at > 0 && /\S/.test(before[at - 1] ?? "")) at -= 1;
  // A mark after a space forms one character with it, which belongs to no word.
  return atBoundary(text, at) === at ? at : boundaryBefore(text, at + 1);
}

function boundaryBefore(text: string, cursor: number): number {
  if (cursor === 0) return 0;
  const start = lineStart(text, cursor);
  if (start === cursor) return cursor - 1;
  return cursor - (charactersOf(text.slice(start, cursor)).at(-1)?.length ?? 0);
}

function boundaryAfter(text: string, cursor: number): number {
  const end = lineEnd(text, cursor);
  if (end === cursor) return Math.min(text.length, cursor + 1);
  return cursor + (charactersOf(text.slice(cursor, end))[0]?.length ?? 0);
}

/** Returns the first position between two characters that is not before `cursor`. */
function atBoundary(text: string, cursor: number): number {
  const start = lineStart(text, cursor);
  let at = start;
  for (const character of charactersOf(text.slice(start, lineEnd(text, cursor)))) {
    if (at >= cursor) return at;
    at += character.length;
  }
  return Math.max(at, cursor);
}
