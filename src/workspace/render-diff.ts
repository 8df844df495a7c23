import { createHash } from "node:crypto";
import { setImmediate as breathe } from "node:timers/promises";
import { CaissonError } from "../contract/error/error.ts";
import { showBytes } from "../lib/quantity.ts";
import { renderBinaryPatch } from "./binary-patch.ts";
import { type Change, type FileSide, gitMode, isText, kindOf } from "./change.ts";
import { hashLines, similarity } from "./line-hashes.ts";
import { countLines, type DiffBudget, diffText, newDiffBudget, type Piece, type TextDiff } from "./text-diff.ts";

const CONTEXT_LINES = 3;
const CHUNK_BYTES = 256 * 1024;
/** The longest time between yields to other work and checks of the signal. */
const BREATH_MS = 50;
/** Limit for both sides of a file together. A larger diff is not readable on a screen. */
const BRIEF_BYTES_MAX = 1024 * 1024;
const NEWLINE = 0x0a;
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

/**
 * Renders a diff in git's format, with modes, renames, links and binary files, so that `git apply` creates the same
 * files. Yields bytes, since files need not be UTF-8, in pieces of whole lines, so the writer can stop in between.
 * Files too different to compare by line are replaced as a whole, and the hunk header says so.
 */
export function* renderSections(changes: readonly Change[], options: { brief?: boolean } = {}): Generator<Buffer> {
  const budget = newDiffBudget();
  for (const change of changes)
    for (const section of sections(change)) yield* renderSection(section, budget, { isBrief: options.brief === true });
}

/** Like `renderSections`, but one patch for each change. */
export function* renderEach(changes: readonly Change[], options: { brief?: boolean } = {}): Generator<{ change: Change; patch: Buffer }> {
  const budget = newDiffBudget();
  for (const change of changes) {
    const pieces = sections(change).flatMap((section) => [...renderSection(section, budget, { isBrief: options.brief === true })]);
    yield { change, patch: Buffer.concat(pieces) };
  }
}

/** Counts the changed lines of each file. Throws `cancelled` when the signal fires. */
export async function diffStat(changes: readonly Change[], options: { signal?: AbortSignal } = {}): Promise<DiffStat[]> {
  const budget = newDiffBudget();
  const stats: DiffStat[] = [];
  let breathedAtMs = performance.now();
  for (const change of changes) {
    stats.push(statOf(change, budget));
    if (performance.now() - breathedAtMs < BREATH_MS) continue;
    await breathe();
    if (options.signal?.aborted) throw new CaissonError("cancelled", "the diff was cancelled");
    breathedAtMs = performance.now();
  }
  return stats;
}

function statOf(change: Change, budget: DiffBudget): DiffStat {
  const { path, from, changedOutside } = change;
  const binary = isBinary(change);
  let [linesAdded, linesRemoved] = [0, 0];
  for (const section of binary ? [] : sections(change)) {
    const { pieces, removed, added } = textDiffOf(section, budget);
    const count = (sign: string, all: Buffer) =>
      pieces === null ? countLines(all) : pieces.reduce((sum, piece) => (piece.sign === sign ? sum + piece.lines.length : sum), 0);
    linesAdded += count("+", added);
    linesRemoved += count("-", removed);
  }
  return { path, from, kind: kindOf(change), binary, linesAdded, linesRemoved, changedOutside };
}

type Section = Pick<Change, "path" | "from" | "before" | "after">;

/** Splits a change between file and link into a removal and an addition. */
function sections(change: Change): Section[] {
  const { path, from, before, after } = change;
  if (before === null || after === null || before.kind === after.kind) return [change];
  return [
    { path: from ?? path, from: null, before, after: null },
    { path, from: null, before: null, after },
  ];
}

/** One character stands for one byte throughout, since contents may have any encoding. */
function* renderSection(section: Section, budget: DiffBudget, { isBrief }: { isBrief: boolean }): Generator<Buffer> {
  const { before, after } = section;
  const oldName = quoteName(`a/${section.from ?? section.path}`);
  const newName = quoteName(`b/${section.path}`);
  const lines = [`diff --git ${oldName} ${newName}`];
  if (before === null && after) lines.push(`new file mode ${gitMode(after)}`);
  else if (after === null && before) lines.push(`deleted file mode ${gitMode(before)}`);
  else if (before && after && gitMode(before) !== gitMode(after)) lines.push(`old mode ${gitMode(before)}`, `new mode ${gitMode(after)}`);
  const same = before !== null && after !== null && before.content.equals(after.content);
  if (section.from !== null && before && after) {
    const alike = same ? 1 : similarity(hashLines(before.content), hashLines(after.content));
    lines.push(
      `similarity index ${Math.floor(alike * 100)}%`,
      `rename from ${quoteName(section.from)}`,
      `rename to ${quoteName(section.path)}`,
    );
  }
  const mode = before && after && gitMode(before) === gitMode(after) ? ` ${gitMode(after)}` : "";
  if (!same) lines.push(`index ${blobName(before)}..${blobName(after)}${mode}`);
  yield latin1(`${lines.join("\n")}\n`);
  if (same) return;
  if (isBrief && (isBinary(section) || sizeOf(before) + sizeOf(after) > BRIEF_BYTES_MAX)) {
    yield latin1(`${isBinary(section) ? "Binary" : "Big"} file: ${showBytes(sizeOf(before))} to ${showBytes(sizeOf(after))}\n`);
    return;
  }
  if (isBinary(section)) {
    yield* renderBinaryPatch(before?.content ?? Buffer.alloc(0), after?.content ?? Buffer.alloc(0));
    return;
  }
  const diff = textDiffOf(section, budget);
  if (diff.removed.length + diff.added.length === 0) return;
  yield latin1(`--- ${before === null ? "/dev/null" : withTab(oldName)}\n+++ ${after === null ? "/dev/null" : withTab(newName)}\n`);
  if (diff.pieces === null) yield* renderReplaced(diff);
  else yield latin1(renderHunks(diff, diff.pieces));
}

const sizeOf = (side: FileSide | null) => side?.content.length ?? 0;

const latin1 = (text: string) => Buffer.from(text, "latin1");

const textDiffOf = ({ before, after }: Section, budget: DiffBudget) =>
  diffText(before?.content ?? Buffer.alloc(0), after?.content ?? Buffer.alloc(0), budget);

/** Appends a tab to a name with a space: other tools would take its end for a timestamp. */
const withTab = (name: string) => (name.includes(" ") && !name.startsWith('"') ? `${name}\t` : name);

function renderHunks(diff: TextDiff, middle: readonly Piece[]): string {
  const pieces: Piece[] = [{ sign: " ", lines: diff.lead }, ...middle, { sign: " ", lines: diff.trail }];
  const text: string[] = [];
  for (const hunk of hunksOf(number(pieces, diff.linesBefore + 1))) {
    const first = hunk[0];
    if (!first) continue;
    const oldCount = hunk.filter((line) => line.sign !== "+").length;
    const newCount = hunk.filter((line) => line.sign !== "-").length;
    text.push(`${hunkHead({ oldLine: first.oldLine, oldCount, newLine: first.newLine, newCount })}\n`);
    for (const line of hunk) text.push(`${line.sign}${line.text}${line.unterminated ? NO_NEWLINE : ""}\n`);
  }
  return text.join("");
}

const NO_NEWLINE = "\n\\ No newline at end of file";

function hunkHead({
  oldLine,
  oldCount,
  newLine,
  newCount,
}: {
  oldLine: number;
  oldCount: number;
  newLine: number;
  newCount: number;
}): string {
  const start = (line: number, count: number) => (count === 0 ? line - 1 : line);
  return `@@ -${range(start(oldLine, oldCount), oldCount)} +${range(start(newLine, newCount), newCount)} @@`;
}

/** Yields all old lines, then all new ones, without splitting them first, so memory stays bounded by one piece. */
function* renderReplaced(diff: TextDiff): Generator<Buffer> {
  const around = diff.lead.length + diff.trail.length;
  const [removed, added] = [countLines(diff.removed), countLines(diff.added)];
  const line = diff.linesBefore + 1;
  const head = hunkHead({ oldLine: line, oldCount: removed + around, newLine: line, newCount: added + around });
  yield latin1(`${head} too different: ${removed} lines replaced by ${added}\n`);
  const context = (lines: readonly string[]) => lines.map((each) => ` ${each}${each.endsWith("\n") ? "" : `${NO_NEWLINE}\n`}`).join("");
  yield latin1(context(diff.lead));
  yield* signLines("-", diff.removed);
  yield* signLines("+", diff.added);
  yield latin1(context(diff.trail));
}

function* signLines(sign: string, content: Buffer): Generator<Buffer> {
  for (let at = 0; at < content.length; ) {
    const next = content.indexOf(NEWLINE, Math.min(at + CHUNK_BYTES, content.length - 1));
    const to = next < 0 ? content.length : next + 1;
    const text = content.toString("latin1", at, to);
    yield latin1(
      `${sign}${text.slice(0, -1).replaceAll("\n", `\n${sign}`)}${text.endsWith("\n") ? "\n" : `${text.at(-1)}${NO_NEWLINE}\n`}`,
    );
    at = to;
  }
}

interface Line {
  sign: Piece["sign"];
  text: string;
  oldLine: number;
  newLine: number;
  unterminated: boolean;
}

/** Numbers the lines. They keep their newline during the comparison, so a missing one at the end is a difference. */
function number(pieces: readonly Piece[], first: number): Line[] {
  const lines: Line[] = [];
  let oldLine = first;
  let newLine = first;
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

/** Groups changed lines with their context into hunks. Hunks with overlapping context are merged. */
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

const isBinary = (section: Section) => [section.before, section.after].some((side) => side !== null && !isText(side.content));
const range = (start: number, count: number) => (count === 1 ? `${start}` : `${start},${count}`);

function blobName(side: FileSide | null): string {
  return side === null ? NO_BLOB : blobOf(side.content);
}

/** Returns git's blob name for this content. */
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

/**
 * Quotes a name as git does if it has unusual characters, or spaces that make the section header ambiguous. One
 * character per byte.
 */
function quoteName(name: string): string {
  const bytes = Buffer.from(name, "utf8").toString("latin1");
  // If a name contains invisible or control characters, we quote all its non-ASCII bytes, since we cannot trust any of
  // them to be a letter.
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these are the characters that need quoting.
  const unusual = deceptive.test(name) ? /[\x00-\x1f\x7f-\xff"\\]/g : /[\x00-\x1f\x7f"\\]/g;
  if (!unusual.test(bytes) && !/ \/| [ab]\/| $/.test(bytes)) return bytes;
  return `"${bytes.replace(unusual, (character) => escapes[character] ?? `\\${character.charCodeAt(0).toString(8).padStart(3, "0")}`)}"`;
}
