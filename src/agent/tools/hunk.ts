import { CaissonError } from "../../contract/error.ts";

/** One file's change as a patch describes it. */
export type FilePatch =
  | { kind: "add"; path: string; content: string }
  | { kind: "delete"; path: string }
  | { kind: "update"; path: string; moveTo: string | null; hunks: Hunk[] };

export interface HunkLine {
  sign: " " | "+" | "-";
  text: string;
  /** The file ends here, without a newline. */
  noNewline?: true;
}

export interface Hunk {
  /** Lines to look for first, one below the other, such as a class's and a method's head. */
  anchors: string[];
  /** Where a unified diff says that it begins in the old file, from 1. */
  oldStart: number | null;
  /** It belongs at the file's end. */
  atEnd: boolean;
  lines: HunkLine[];
}

/** One line of a hunk; an empty one is context that lost its space. */
export function hunkLine(line: string, number: number): HunkLine {
  const sign = line === "" ? " " : line[0];
  if (sign === " " || sign === "+" || sign === "-") return { sign, text: line.slice(1) };
  throw unreadable(`a line begins with ${JSON.stringify(sign)}, not with a space, + or -`, number);
}

/** A blank line before the next header is no context. */
export function dropTrailingBlanks(hunk: Hunk): void {
  while (hunk.lines.at(-1)?.sign === " " && hunk.lines.at(-1)?.text === "") hunk.lines.pop();
}

export function unreadable(what: string, line: number): CaissonError {
  return new CaissonError("invalid", `the patch cannot be read at line ${line}: ${what}`);
}
