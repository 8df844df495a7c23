import { CaissonError } from "../../contract/error/error.ts";

/** A patch's change to one file. */
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
  /** Lines to find before the hunk, one below the other, such as the first lines of a class and of a method. */
  anchors: string[];
  /** The first line in the old file according to a unified diff, counted from 1; otherwise null. */
  oldStart: number | null;
  /** True if the hunk belongs at the end of the file. */
  atEnd: boolean;
  lines: HunkLine[];
}

/** Parses one line of a hunk. An empty line is context that lost its space. */
export function hunkLine(line: string, number: number): HunkLine {
  const sign = line === "" ? " " : line[0];
  if (sign === " " || sign === "+" || sign === "-") return { sign, text: line.slice(1) };
  throw unreadable(`a line begins with ${JSON.stringify(sign)} instead of a space, + or -`, number);
}

/** Drops blank lines at the end: before the next header they are not context. */
export function dropTrailingBlanks(hunk: Hunk): void {
  while (hunk.lines.at(-1)?.sign === " " && hunk.lines.at(-1)?.text === "") hunk.lines.pop();
}

export function unreadable(what: string, line: number): CaissonError {
  return new CaissonError("invalid", `the patch is malformed at line ${line}: ${what}`);
}
