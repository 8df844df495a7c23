import { CaissonError } from "../../contract/error.ts";

/** One file's change as a patch describes it. */
export type FilePatch =
  | { kind: "add"; path: string; content: string }
  | { kind: "delete"; path: string }
  | { kind: "update"; path: string; moveTo: string | null; hunks: Hunk[] };

interface Hunk {
  /** A line to look for first, such as a function's head. */
  anchor: string | null;
  lines: { sign: " " | "+" | "-"; text: string }[];
}

const FILES_MAX = 200;

/**
 * Reads a patch of the form `*** Begin Patch … *** End Patch` with Add, Update, Delete and Move, or a unified diff. Throws `invalid` naming the line.
 */
export function parsePatch(text: string): FilePatch[] {
  const lines = text.replaceAll("\r\n", "\n").split("\n");
  const patches = lines.some((line) => line.startsWith("*** Begin Patch")) ? parseEnvelope(lines) : parseUnified(lines);
  if (patches.length === 0) throw bad("it changes no file", 1);
  if (patches.length > FILES_MAX)
    throw new CaissonError("too_large", `The patch changes ${patches.length} files; at most ${FILES_MAX} at once.`);
  return patches;
}

function parseEnvelope(lines: string[]): FilePatch[] {
  const patches: FilePatch[] = [];
  let at = lines.findIndex((line) => line.startsWith("*** Begin Patch")) + 1;
  const inSection = () => at < lines.length && !(lines[at] ?? "").startsWith("*** ");
  while (at < lines.length) {
    const line = lines[at] ?? "";
    at += 1;
    if (line.startsWith("*** End Patch")) return patches;
    const header = /^\*\*\* (Add|Update|Delete) File: (.+)$/.exec(line);
    if (!header?.[2]) {
      if (line.trim() === "") continue;
      throw bad(`expected a file header, found ${JSON.stringify(line.slice(0, 80))}`, at);
    }
    const path = header[2].trim();
    if (header[1] === "Delete") patches.push({ kind: "delete", path });
    else if (header[1] === "Add") {
      const content: string[] = [];
      for (; inSection(); at++) {
        const added = lines[at] ?? "";
        if (!added.startsWith("+")) throw bad("every line of a new file begins with +", at + 1);
        content.push(added.slice(1));
      }
      patches.push({ kind: "add", path, content: content.length === 0 ? "" : `${content.join("\n")}\n` });
    } else {
      const move = /^\*\*\* Move to: (.+)$/.exec(lines[at] ?? "");
      if (move) at += 1;
      const start = at;
      while (inSection() || (lines[at] ?? "") === "*** End of File") at += 1;
      patches.push({ kind: "update", path, moveTo: move?.[1]?.trim() ?? null, hunks: parseHunks(lines.slice(start, at), start) });
    }
  }
  throw bad("it has no *** End Patch", lines.length);
}

function parseHunks(lines: string[], offset: number): Hunk[] {
  const hunks: Hunk[] = [];
  let current: Hunk | null = null;
  lines.forEach((line, index) => {
    if (line === "*** End of File") return;
    if (line.startsWith("@@")) {
      const anchor = line.replace(/^@@( -\d+(,\d+)? \+\d+(,\d+)? @@)?/, "").trim();
      current = { anchor: anchor === "" ? null : anchor, lines: [] };
      hunks.push(current);
      return;
    }
    const sign = line === "" ? " " : line[0];
    if (sign !== " " && sign !== "+" && sign !== "-") {
      if (sign === "\\") return;
      throw bad(`a line begins with ${JSON.stringify(sign)}, not with a space, + or -`, offset + index + 1);
    }
    if (current === null) {
      current = { anchor: null, lines: [] };
      hunks.push(current);
    }
    current.lines.push({ sign, text: line.slice(1) });
  });
  // A blank line before the next header is no context.
  for (const hunk of hunks) while (hunk.lines.at(-1)?.sign === " " && hunk.lines.at(-1)?.text === "") hunk.lines.pop();
  return hunks.filter((hunk) => hunk.lines.length > 0);
}

function parseUnified(lines: string[]): FilePatch[] {
  const patches: FilePatch[] = [];
  const name = (line: string) => {
    const path = line.slice(4).split("\t")[0]?.trim() ?? "";
    return path === "/dev/null" ? null : path.replace(/^[ab]\//, "");
  };
  for (let at = 0; at < lines.length; at++) {
    if (!(lines[at] ?? "").startsWith("--- ") || !(lines[at + 1] ?? "").startsWith("+++ ")) continue;
    const before = name(lines[at] ?? "");
    const after = name(lines[at + 1] ?? "");
    const start = at + 2;
    let end = start;
    while (
      end < lines.length &&
      !(lines[end] ?? "").startsWith("diff --git") &&
      !((lines[end] ?? "").startsWith("--- ") && (lines[end + 1] ?? "").startsWith("+++ "))
    )
      end += 1;
    const hunks = parseHunks(lines.slice(start, end), start);
    if (before === null && after !== null) {
      const content = hunks.flatMap((hunk) => hunk.lines.filter((line) => line.sign === "+").map((line) => line.text));
      patches.push({ kind: "add", path: after, content: content.length === 0 ? "" : `${content.join("\n")}\n` });
    } else if (before !== null && after === null) patches.push({ kind: "delete", path: before });
    else if (before !== null && after !== null)
      patches.push({ kind: "update", path: before, moveTo: after === before ? null : after, hunks });
    at = end - 1;
  }
  return patches;
}

/** Finds each hunk's context in the text, in order, exactly or but for white space at the line ends. Throws `conflict` naming the hunk that does not fit. */
export function applyHunks(text: string, hunks: readonly Hunk[], path: string): string {
  const endsWithNewline = text.endsWith("\n") || text === "";
  const lines = text === "" ? [] : (endsWithNewline ? text.slice(0, -1) : text).split("\n");
  let from = 0;
  hunks.forEach((hunk, index) => {
    if (hunk.anchor !== null) {
      const anchor = hunk.anchor;
      const found = lines.findIndex((line, at) => at >= from && line.trim() === anchor);
      if (found !== -1) from = found;
    }
    const old = hunk.lines.filter((line) => line.sign !== "+").map((line) => line.text);
    const at = find(lines, old, from);
    if (at === -1) {
      throw new CaissonError(
        "conflict",
        `Hunk ${index + 1} does not fit ${path}: these lines are not there: ${JSON.stringify(old.slice(0, 5).join("\n"))}`,
        {
          hint: "Read the file and make the patch from what it says now.",
        },
      );
    }
    const fresh: string[] = [];
    let cursor = at;
    for (const line of hunk.lines) {
      if (line.sign === "+") fresh.push(line.text);
      else {
        if (line.sign === " ") fresh.push(lines[cursor] ?? line.text);
        cursor += 1;
      }
    }
    lines.splice(at, old.length, ...fresh);
    from = at + fresh.length;
  });
  return lines.length === 0 ? "" : `${lines.join("\n")}${endsWithNewline ? "\n" : ""}`;
}

function find(lines: readonly string[], old: readonly string[], from: number): number {
  if (old.length === 0) return lines.length;
  for (const same of [(a: string, b: string) => a === b, (a: string, b: string) => a.trimEnd() === b.trimEnd()]) {
    for (const start of [from, 0]) {
      for (let at = start; at + old.length <= lines.length; at++) {
        if (old.every((line, offset) => same(lines[at + offset] ?? "", line))) return at;
      }
    }
  }
  return -1;
}

function bad(what: string, line: number): CaissonError {
  return new CaissonError("invalid", `The patch cannot be read at line ${line}: ${what}.`);
}
