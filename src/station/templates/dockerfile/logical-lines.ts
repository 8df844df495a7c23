import { dockerfileBounds, problemAt } from "./dockerfile-problem.ts";
import type { Heredoc } from "./instruction.ts";

/** One instruction with its continuation lines joined, and its heredocs. */
export interface LogicalLine {
  line: number;
  /** The keyword in upper case. */
  keyword: string;
  /** Everything after the keyword. */
  rest: string;
  heredocs: readonly Heredoc[];
  /** The instruction with its heredocs, as a shell reads it. */
  script: string;
}

export interface LogicalLines {
  escapeMark: "\\" | "`";
  syntax: string | null;
  lines: readonly LogicalLine[];
}

const takesHeredocs: ReadonlySet<string> = new Set(["RUN", "COPY", "ADD"]);

/** Joins the lines of a Dockerfile to instructions. Throws `invalid`, and `too_large` beyond a bound. */
export function logicalLines(text: string): LogicalLines {
  if (Buffer.byteLength(text) > dockerfileBounds.bytesMax)
    throw problemAt(1, `the file is larger than ${dockerfileBounds.bytesMax} bytes`, { code: "too_large" });
  if (text.includes("\0")) throw problemAt(1, "the file contains NUL");
  const physical = text
    .replace(/^\uFEFF/, "")
    .split("\n")
    .map((line) => (line.endsWith("\r") ? line.slice(0, -1) : line));
  if (physical.length > dockerfileBounds.linesMax)
    throw problemAt(1, `the file has more than ${dockerfileBounds.linesMax} lines`, { code: "too_large" });
  const { escapeMark, syntax, at } = directives(physical);
  const lines: LogicalLine[] = [];
  const cursor = { at };
  while (cursor.at < physical.length) {
    const joined = joinLines(physical, cursor, escapeMark);
    if (joined === null) continue;
    if (lines.length >= dockerfileBounds.instructionsMax)
      throw problemAt(joined.line, `the file has more than ${dockerfileBounds.instructionsMax} instructions`, { code: "too_large" });
    lines.push(withHeredocs(joined, { physical, cursor, escapeMark }));
  }
  return { escapeMark, syntax, lines };
}

/** Reads `# escape=` and `# syntax=`, which only count before anything else. */
function directives(physical: readonly string[]): { escapeMark: "\\" | "`"; syntax: string | null; at: number } {
  let escapeMark: "\\" | "`" = "\\";
  let syntax: string | null = null;
  const seen = new Set<string>();
  let at = 0;
  for (; at < physical.length; at += 1) {
    const [, name = "", value = ""] = /^\s*#\s*([A-Za-z]+)\s*=(.*)$/.exec(physical[at] as string) ?? [];
    const key = name.toLowerCase();
    if (!["escape", "syntax", "check"].includes(key) || seen.has(key)) break;
    seen.add(key);
    if (key === "syntax") syntax = value.trim();
    if (key !== "escape") continue;
    const character = value.trim();
    if (character !== "\\" && character !== "`") throw problemAt(at + 1, "the escape character must be \\ or `");
    escapeMark = character;
  }
  return { escapeMark, syntax, at };
}

interface JoinedLine {
  line: number;
  text: string;
}

const isComment = (line: string) => line.trimStart().startsWith("#");

/**
 * Joins the next instruction, without comments and empty lines in it. Returns null if no instruction begins on this
 * line.
 */
function joinLines(physical: readonly string[], cursor: { at: number }, escapeMark: string): JoinedLine | null {
  const line = cursor.at + 1;
  const first = physical[cursor.at] as string;
  if (first.trim() === "" || isComment(first)) {
    cursor.at += 1;
    return null;
  }
  const parts: string[] = [];
  while (cursor.at < physical.length) {
    const current = physical[cursor.at] as string;
    cursor.at += 1;
    if (parts.length > 0 && (isComment(current) || current.trim() === "")) continue;
    const trimmed = current.trimEnd();
    const continues = trimmed.endsWith(escapeMark);
    parts.push(continues ? trimmed.slice(0, -1) : current);
    if (!continues) break;
  }
  return { line, text: parts.join("").trim() };
}

function withHeredocs(
  { line, text }: JoinedLine,
  { physical, cursor, escapeMark }: { physical: readonly string[]; cursor: { at: number }; escapeMark: string },
): LogicalLine {
  const space = /\s/.exec(text)?.index ?? text.length;
  const keyword = text.slice(0, space).toUpperCase();
  const rest = text.slice(space).trim();
  const openings = takesHeredocs.has(keyword) ? heredocOpenings(rest, escapeMark) : [];
  const heredocs: Heredoc[] = [];
  let script = rest;
  for (const { name, dropsTabs, expands } of openings) {
    const content: string[] = [];
    for (;;) {
      if (cursor.at >= physical.length) throw problemAt(line, `the heredoc ${name} has no end`);
      const current = physical[cursor.at] as string;
      cursor.at += 1;
      const withoutTabs = dropsTabs ? current.replace(/^\t+/, "") : current;
      script += `\n${current}`;
      if (withoutTabs === name) break;
      content.push(withoutTabs);
    }
    heredocs.push({ name, expands, content: content.map((each) => `${each}\n`).join("") });
  }
  return { line, keyword, rest, heredocs, script: openings.length > 0 ? `${script}\n` : script };
}

interface Opening {
  name: string;
  dropsTabs: boolean;
  expands: boolean;
}

const OPENING = /<<(-?)(?:"([A-Za-z0-9_.-]+)"|'([A-Za-z0-9_.-]+)'|([A-Za-z0-9_.-]+))/y;

/** Finds `<<NAME` outside of quotes. `<<<` is a here-string of the shell. */
function heredocOpenings(text: string, escapeMark: string): Opening[] {
  const found: Opening[] = [];
  let quote = "";
  for (let at = 0; at < text.length; at += 1) {
    const character = text[at] as string;
    if (character === escapeMark && quote !== "'") at += 1;
    else if (quote === "" && (character === '"' || character === "'")) quote = character;
    else if (character === quote) quote = "";
    else if (quote === "" && text.startsWith("<<<", at)) at += 2;
    else if (quote === "" && text.startsWith("<<", at)) {
      OPENING.lastIndex = at;
      const match = OPENING.exec(text);
      if (match === null) continue;
      const [all, dash, double, single, plain] = match;
      found.push({ name: (double ?? single ?? plain) as string, dropsTabs: dash === "-", expands: plain !== undefined });
      at += all.length - 1;
    }
  }
  return found;
}

/** Removes `<<NAME` from the words of COPY and ADD. */
export const isHeredocWord = (word: string) => /^<<-?(?:"[A-Za-z0-9_.-]+"|'[A-Za-z0-9_.-]+'|[A-Za-z0-9_.-]+)$/.test(word);
