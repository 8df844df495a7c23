import { createHash } from "node:crypto";
import { type Change, type FileSide, isText, kindOf } from "./change.ts";
import { diffLines, type Piece } from "./text-diff.ts";

const CONTEXT_LINES = 3;

export interface DiffStat {
  path: string;
  from: string | null;
  kind: ReturnType<typeof kindOf>;
  binary: boolean;
  linesAdded: number;
  linesRemoved: number;
}

/** A unified diff as git writes it, with modes, renames and links, so that every tool that reads one can read ours. */
export function renderDiff(changes: readonly Change[]): string {
  return changes.map(renderChange).join("");
}

export function diffStat(changes: readonly Change[]): DiffStat[] {
  return changes.map((change) => {
    const binary = isBinary(change);
    const pieces = binary ? [] : piecesOf(change);
    const count = (sign: string) => pieces.reduce((sum, piece) => (piece.sign === sign ? sum + piece.lines.length : sum), 0);
    return { path: change.path, from: change.from, kind: kindOf(change), binary, linesAdded: count("+"), linesRemoved: count("-") };
  });
}

function renderChange(change: Change): string {
  const { before, after } = change;
  const oldName = quoted(`a/${change.from ?? change.path}`);
  const newName = quoted(`b/${change.path}`);
  const lines = [`diff --git ${oldName} ${newName}`];
  if (before === null && after) lines.push(`new file mode ${gitMode(after)}`);
  else if (after === null && before) lines.push(`deleted file mode ${gitMode(before)}`);
  else if (before && after && gitMode(before) !== gitMode(after)) lines.push(`old mode ${gitMode(before)}`, `new mode ${gitMode(after)}`);
  if (change.from !== null && before && after) {
    const similarity = before.content.equals(after.content) ? 100 : Math.floor(similarityOf(before.content, after.content) * 100);
    lines.push(`similarity index ${similarity}%`, `rename from ${quoted(change.from)}`, `rename to ${quoted(change.path)}`);
  }
  if (before && after && before.content.equals(after.content)) return `${lines.join("\n")}\n`;
  const mode = before && after && gitMode(before) === gitMode(after) ? ` ${gitMode(after)}` : "";
  lines.push(`index ${blobName(before)}..${blobName(after)}${mode}`);
  const oldPath = before === null ? "/dev/null" : oldName;
  const newPath = after === null ? "/dev/null" : newName;
  if (isBinary(change)) return `${lines.join("\n")}\nBinary files ${oldPath} and ${newPath} differ\n`;
  const hunks = renderHunks(change);
  return hunks === "" ? `${lines.join("\n")}\n` : `${lines.join("\n")}\n--- ${oldPath}\n+++ ${newPath}\n${hunks}`;
}

function renderHunks(change: Change): string {
  const numbered = number(piecesOf(change));
  let text = "";
  for (const hunk of hunksOf(numbered)) {
    const first = hunk[0];
    if (!first) continue;
    const oldCount = hunk.filter((line) => line.sign !== "+").length;
    const newCount = hunk.filter((line) => line.sign !== "-").length;
    const start = (line: number, count: number) => (count === 0 ? line - 1 : line);
    text += `@@ -${range(start(first.oldLine, oldCount), oldCount)} +${range(start(first.newLine, newCount), newCount)} @@\n`;
    for (const line of hunk) text += `${line.sign}${line.text}${line.unterminated ? "\n\\ No newline at end of file" : ""}\n`;
  }
  return text;
}

interface Line {
  sign: Piece["sign"];
  text: string;
  oldLine: number;
  newLine: number;
  unterminated: boolean;
}

/** Lines keep their newline while they are compared, so that a missing one at the end is a difference. */
function number(pieces: readonly Piece[]): Line[] {
  const lines: Line[] = [];
  let oldLine = 1;
  let newLine = 1;
  for (const piece of pieces) {
    for (const raw of piece.lines) {
      const unterminated = !raw.endsWith("\n");
      lines.push({ sign: piece.sign, text: unterminated ? raw : raw.slice(0, -1), oldLine, newLine, unterminated });
      if (piece.sign !== "+") oldLine += 1;
      if (piece.sign !== "-") newLine += 1;
    }
  }
  return lines;
}

function hunksOf(lines: readonly Line[]): Line[][] {
  const hunks: Line[][] = [];
  let current: Line[] = [];
  let quiet = 0;
  const recent: Line[] = [];
  for (const line of lines) {
    if (line.sign === " ") {
      quiet += 1;
      if (current.length > 0 && quiet <= 2 * CONTEXT_LINES) current.push(line);
      else if (current.length > 0) {
        hunks.push(current.slice(0, current.length - CONTEXT_LINES));
        recent.splice(0, recent.length, ...current.slice(-CONTEXT_LINES), line);
        current = [];
      } else recent.push(line);
      if (current.length === 0) recent.splice(0, Math.max(0, recent.length - CONTEXT_LINES));
      continue;
    }
    if (current.length === 0) current = recent.splice(0);
    quiet = 0;
    current.push(line);
  }
  if (current.length > 0) hunks.push(current.slice(0, current.length - Math.max(0, quiet - CONTEXT_LINES)));
  return hunks;
}

function piecesOf(change: Change): Piece[] {
  return diffLines(splitLines(change.before), splitLines(change.after));
}

function splitLines(side: FileSide | null): string[] {
  if (side === null || side.content.length === 0) return [];
  return side.content.toString("utf8").match(/[^\n]*\n|[^\n]+$/g) ?? [];
}

/** The part of the lines that two texts share, 0 to 1. */
export function similarityOf(a: Buffer, b: Buffer): number {
  const before = a.toString("utf8").split("\n");
  const after = b.toString("utf8").split("\n");
  const counts = new Map<string, number>();
  for (const line of before) counts.set(line, (counts.get(line) ?? 0) + 1);
  let shared = 0;
  for (const line of after) {
    const left = counts.get(line) ?? 0;
    if (left > 0) {
      shared += 1;
      counts.set(line, left - 1);
    }
  }
  return shared / Math.max(before.length, after.length, 1);
}

const isBinary = (change: Change) => [change.before, change.after].some((side) => side !== null && !isText(side.content));
const gitMode = (side: FileSide) => (side.kind === "link" ? "120000" : side.mode & 0o111 ? "100755" : "100644");
const range = (start: number, count: number) => (count === 1 ? `${start}` : `${start},${count}`);

function blobName(side: FileSide | null): string {
  if (side === null) return "0".repeat(10);
  return createHash("sha1").update(`blob ${side.content.length}\0`).update(side.content).digest("hex").slice(0, 10);
}

/** As git quotes a name with unusual characters. */
function quoted(name: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these are the characters that need quoting.
  if (!/[\x00-\x1f\x7f"\\]/.test(name)) return name;
  // biome-ignore lint/suspicious/noControlCharactersInRegex: as above.
  const escaped = name.replace(/[\x00-\x1f\x7f"\\]/g, (character) => {
    const named: Record<string, string> = { "\n": "\\n", "\t": "\\t", '"': '\\"', "\\": "\\\\" };
    return named[character] ?? `\\${character.charCodeAt(0).toString(8).padStart(3, "0")}`;
  });
  return `"${escaped}"`;
}
