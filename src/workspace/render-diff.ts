import { createHash } from "node:crypto";
import { renderBinaryPatch } from "./binary-patch.ts";
import { type Change, type FileSide, gitMode, isText, kindOf } from "./change.ts";
import { diffLines, type Piece } from "./text-diff.ts";

const CONTEXT_LINES = 3;
const NO_BLOB = "0".repeat(40);

export interface DiffStat {
  path: string;
  from: string | null;
  kind: ReturnType<typeof kindOf>;
  binary: boolean;
  linesAdded: number;
  linesRemoved: number;
  changedOutside: boolean;
}

/** A diff as git writes it, with modes, renames, links and binary files, so that `git apply` makes the same files of it. Bytes: files need not be UTF-8. */
export function renderDiff(changes: readonly Change[]): Buffer {
  return Buffer.from(changes.flatMap(sections).map(renderSection).join(""), "latin1");
}

export function diffStat(changes: readonly Change[]): DiffStat[] {
  return changes.map((change) => {
    const { path, from, changedOutside } = change;
    const binary = isBinary(change);
    const pieces = binary ? [] : sections(change).flatMap(piecesOf);
    const count = (sign: string) => pieces.reduce((sum, piece) => (piece.sign === sign ? sum + piece.lines.length : sum), 0);
    return { path, from, kind: kindOf(change), binary, linesAdded: count("+"), linesRemoved: count("-"), changedOutside };
  });
}

type Section = Pick<Change, "path" | "from" | "before" | "after">;

/** A file that became a link, or a link a file, is one that went and one that came. */
function sections(change: Change): Section[] {
  const { path, from, before, after } = change;
  if (before === null || after === null || before.kind === after.kind) return [change];
  return [
    { path: from ?? path, from: null, before, after: null },
    { path, from: null, before: null, after },
  ];
}

/** One character is one byte all through: contents need not be text in any encoding. */
function renderSection(section: Section): string {
  const { before, after } = section;
  const oldName = quoted(`a/${section.from ?? section.path}`);
  const newName = quoted(`b/${section.path}`);
  const lines = [`diff --git ${oldName} ${newName}`];
  if (before === null && after) lines.push(`new file mode ${gitMode(after)}`);
  else if (after === null && before) lines.push(`deleted file mode ${gitMode(before)}`);
  else if (before && after && gitMode(before) !== gitMode(after)) lines.push(`old mode ${gitMode(before)}`, `new mode ${gitMode(after)}`);
  if (section.from !== null && before && after) {
    const similarity = before.content.equals(after.content) ? 100 : Math.floor(similarityOf(before.content, after.content) * 100);
    lines.push(`similarity index ${similarity}%`, `rename from ${quoted(section.from)}`, `rename to ${quoted(section.path)}`);
  }
  if (before && after && before.content.equals(after.content)) return `${lines.join("\n")}\n`;
  const mode = before && after && gitMode(before) === gitMode(after) ? ` ${gitMode(after)}` : "";
  lines.push(`index ${blobName(before)}..${blobName(after)}${mode}`);
  const head = `${lines.join("\n")}\n`;
  if (isBinary(section)) return head + renderBinaryPatch(before?.content ?? Buffer.alloc(0), after?.content ?? Buffer.alloc(0));
  const hunks = renderHunks(section);
  if (hunks === "") return head;
  return `${head}--- ${before === null ? "/dev/null" : ended(oldName)}\n+++ ${after === null ? "/dev/null" : ended(newName)}\n${hunks}`;
}

/** A name with a space is followed by a tab, or other tools take its end for a time stamp. */
const ended = (name: string) => (name.includes(" ") && !name.startsWith('"') ? `${name}\t` : name);

function renderHunks(section: Section): string {
  const numbered = number(piecesOf(section));
  const text: string[] = [];
  for (const hunk of hunksOf(numbered)) {
    const first = hunk[0];
    if (!first) continue;
    const oldCount = hunk.filter((line) => line.sign !== "+").length;
    const newCount = hunk.filter((line) => line.sign !== "-").length;
    const start = (line: number, count: number) => (count === 0 ? line - 1 : line);
    text.push(`@@ -${range(start(first.oldLine, oldCount), oldCount)} +${range(start(first.newLine, newCount), newCount)} @@\n`);
    for (const line of hunk) text.push(`${line.sign}${line.text}${line.unterminated ? "\n\\ No newline at end of file" : ""}\n`);
  }
  return text.join("");
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

/** Changed lines with the lines around them; two that share those are one hunk. */
function hunksOf(lines: readonly Line[]): Line[][] {
  const hunks: { start: number; end: number }[] = [];
  for (const [index, line] of lines.entries()) {
    if (line.sign === " ") continue;
    const start = Math.max(0, index - CONTEXT_LINES);
    const end = Math.min(lines.length, index + 1 + CONTEXT_LINES);
    const last = hunks.at(-1);
    if (last && start <= last.end) last.end = end;
    else hunks.push({ start, end });
  }
  return hunks.map(({ start, end }) => lines.slice(start, end));
}

function piecesOf(section: Section): Piece[] {
  return diffLines(splitLines(section.before), splitLines(section.after));
}

function splitLines(side: FileSide | null): string[] {
  if (side === null || side.content.length === 0) return [];
  return side.content.toString("latin1").match(/[^\n]*\n|[^\n]+$/g) ?? [];
}

/** The part of the lines that two texts share, 0 to 1. */
export function similarityOf(a: Buffer, b: Buffer): number {
  const before = a.toString("latin1").split("\n");
  const after = b.toString("latin1").split("\n");
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

const isBinary = (section: Section) => [section.before, section.after].some((side) => side !== null && !isText(side.content));
const range = (start: number, count: number) => (count === 1 ? `${start}` : `${start},${count}`);

function blobName(side: FileSide | null): string {
  return side === null ? NO_BLOB : blobOf(side.content);
}

/** Git's name of a content. */
export function blobOf(content: Buffer): string {
  return createHash("sha1").update(`blob ${content.length}\0`).update(content).digest("hex");
}

const escapes: Readonly<Record<string, string>> = {
  "\x07": "\\a",
  "\b": "\\b",
  "\t": "\\t",
  "\n": "\\n",
  "\v": "\\v",
  "\f": "\\f",
  "\r": "\\r",
  '"': '\\"',
  "\\": "\\\\",
};

const deceptive = /[\u0080-\u009f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff]/u;

/** As git quotes a name with unusual characters, and one whose spaces would make the first line of a section ambiguous; one character for each byte. */
function quoted(name: string): string {
  const bytes = Buffer.from(name, "utf8").toString("latin1");
  // What a terminal would obey, or cannot show, is no ordinary letter, and then no byte of the name passes for one.
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these are the characters that need quoting.
  const unusual = deceptive.test(name) ? /[\x00-\x1f\x7f-\xff"\\]/g : /[\x00-\x1f\x7f"\\]/g;
  if (!unusual.test(bytes) && !/ \/| [ab]\/| $/.test(bytes)) return bytes;
  return `"${bytes.replace(unusual, (character) => escapes[character] ?? `\\${character.charCodeAt(0).toString(8).padStart(3, "0")}`)}"`;
}
