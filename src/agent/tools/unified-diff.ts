import { dropTrailingBlanks, type FilePatch, type Hunk, hunkLine } from "./hunk.ts";

const HUNK = /^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@/;

/** Parses a unified diff, including git's own headers. Skips the text between files. */
export function parseUnified(lines: readonly string[]): FilePatch[] {
  const patches: FilePatch[] = [];
  let git: GitHeader | null = null;
  const flush = () => {
    const patch = git && withoutHunks(git);
    if (patch) patches.push(patch);
    git = null;
  };
  for (let at = 0; at < lines.length; ) {
    const line = lines[at] ?? "";
    if (line.startsWith("diff --git ")) {
      flush();
      git = { from: null, to: null, added: null, removed: null, name: gitName(line) };
      at += 1;
    } else if (isFileHeader(lines, at)) {
      const { hunks, next } = readHunks(lines, at + 2);
      patches.push(fileChange(namesOf(line, lines[at + 1] ?? ""), hunks));
      git = null;
      at = next;
    } else {
      if (git) readGitHeader(git, line);
      at += 1;
    }
  }
  flush();
  return patches;
}

interface GitHeader {
  name: string | null;
  from: string | null;
  to: string | null;
  added: true | null;
  removed: true | null;
}

function readGitHeader(header: GitHeader, line: string): void {
  if (line.startsWith("rename from ")) header.from = unquote(line.slice("rename from ".length));
  else if (line.startsWith("rename to ")) header.to = unquote(line.slice("rename to ".length));
  else if (line.startsWith("new file mode")) header.added = true;
  else if (line.startsWith("deleted file mode")) header.removed = true;
}

/** Returns the change of a file without hunks: a rename, or an empty file that is added or removed. */
function withoutHunks(header: GitHeader): FilePatch | null {
  if (header.from !== null && header.to !== null) return { kind: "update", path: header.from, moveTo: header.to, hunks: [] };
  if (header.name === null) return null;
  if (header.added) return { kind: "add", path: header.name, content: "" };
  return header.removed ? { kind: "delete", path: header.name } : null;
}

function gitName(line: string): string | null {
  const rest = line.slice("diff --git ".length);
  const half = (rest.length - 1) / 2;
  const [a, b] = [unquote(rest.slice(0, half)), unquote(rest.slice(half + 1))];
  return a.startsWith("a/") && b.startsWith("b/") && a.slice(2) === b.slice(2) ? a.slice(2) : null;
}

const isFileHeader = (lines: readonly string[], at: number) =>
  (lines[at] ?? "").startsWith("--- ") && (lines[at + 1] ?? "").startsWith("+++ ");

function namesOf(oldLine: string, newLine: string): { before: string | null; after: string | null } {
  const name = (line: string) => unquote((line.slice(4).split("\t")[0] ?? "").trimEnd());
  const [before, after] = [name(oldLine), name(newLine)];
  // Strip git's prefixes, unless the names really begin this way.
  const prefixed = (before === "/dev/null" || before.startsWith("a/")) && (after === "/dev/null" || after.startsWith("b/"));
  const clean = (path: string) => (path === "/dev/null" ? null : prefixed ? path.slice(2) : path);
  return { before: clean(before), after: clean(after) };
}

function fileChange(names: { before: string | null; after: string | null }, hunks: Hunk[]): FilePatch {
  const { before, after } = names;
  if (before === null) return { kind: "add", path: after ?? "", content: addedContent(hunks) };
  if (after === null) return { kind: "delete", path: before };
  return { kind: "update", path: before, moveTo: after === before ? null : after, hunks };
}

function addedContent(hunks: readonly Hunk[]): string {
  const added = hunks.flatMap((hunk) => hunk.lines.filter((line) => line.sign === "+"));
  if (added.length === 0) return "";
  return `${added.map((line) => line.text).join("\n")}${added.at(-1)?.noNewline ? "" : "\n"}`;
}

function readHunks(lines: readonly string[], start: number): { hunks: Hunk[]; next: number } {
  const hunks: Hunk[] = [];
  let at = start;
  while (at < lines.length) {
    const header = HUNK.exec(lines[at] ?? "");
    if (!header && !(lines[at] ?? "").startsWith("@@")) break;
    const hunk: Hunk = { anchors: [], oldStart: header ? Number(header[1]) : null, atEnd: false, lines: [] };
    const counted = header ? countedEnd(lines, at + 1, { old: Number(header[2] ?? 1), fresh: Number(header[4] ?? 1) }) : null;
    const end = counted ?? looseEnd(lines, at + 1);
    for (let line = at + 1; line < end; line++) addLine(hunk, lines[line] ?? "", line + 1);
    if (counted === null) dropTrailingBlanks(hunk);
    if (hunk.lines.length > 0) hunks.push(hunk);
    at = end;
  }
  return { hunks, next: at };
}

function addLine(hunk: Hunk, line: string, number: number): void {
  const last = hunk.lines.at(-1);
  if (!line.startsWith("\\")) hunk.lines.push(hunkLine(line, number));
  else if (last) last.noNewline = true;
}

/** Returns where the hunk ends according to its own counts, or null if they are wrong, as in many models' diffs. */
function countedEnd(lines: readonly string[], start: number, counts: { old: number; fresh: number }): number | null {
  let { old, fresh } = counts;
  let at = start;
  for (; at < lines.length && (old > 0 || fresh > 0); at++) {
    const line = lines[at] ?? "";
    const sign = line === "" ? " " : line[0];
    if (sign === "\\") continue;
    if (sign !== " " && sign !== "+" && sign !== "-") return null;
    if (sign !== "+") old -= 1;
    if (sign !== "-") fresh -= 1;
  }
  if (old !== 0 || fresh !== 0) return null;
  while ((lines[at] ?? "").startsWith("\\")) at += 1;
  const next = lines[at] ?? "";
  return /^[ +-]/.test(next) && !isFileHeader(lines, at) ? null : at;
}

function looseEnd(lines: readonly string[], start: number): number {
  let at = start;
  while (at < lines.length && !/^(@@|diff --git )/.test(lines[at] ?? "") && !isFileHeader(lines, at)) at += 1;
  return at;
}

/** Decodes git's quoting of names with unusual characters: `"a/\303\244.txt"`. */
function unquote(name: string): string {
  const quoted = /^"(.*)"$/s.exec(name);
  if (!quoted) return name;
  const bytes: number[] = [];
  const escapes: Record<string, string> = { n: "\n", t: "\t", r: "\r", '"': '"', "\\": "\\" };
  for (const piece of (quoted[1] ?? "").match(/\\[0-7]{3}|\\.|[^\\]+/gs) ?? []) {
    if (/^\\[0-7]{3}$/.test(piece)) bytes.push(Number.parseInt(piece.slice(1), 8));
    else bytes.push(...Buffer.from(piece.startsWith("\\") ? (escapes[piece.slice(1)] ?? piece) : piece));
  }
  return Buffer.from(bytes).toString("utf8");
}
