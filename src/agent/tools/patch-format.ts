import { CaissonError } from "../../contract/error/error.ts";
import { dropTrailingBlanks, type FilePatch, type Hunk, hunkLine, unreadable } from "./hunk.ts";
import { parseUnified } from "./unified-diff.ts";

const FILES_MAX = 200;

/**
 * Parses a patch of the form `*** Begin Patch … *** End Patch` with Add, Update, Delete and Move, or a unified diff.
 * Throws `invalid` naming the line.
 */
export function parsePatch(text: string): FilePatch[] {
  const lines = text.replaceAll("\r\n", "\n").split("\n");
  const patches = lines.some((line) => line.startsWith("*** Begin Patch")) ? parseEnvelope(lines) : parseUnified(lines);
  if (patches.length === 0) throw unreadable("no file is changed", 1);
  if (patches.length > FILES_MAX)
    throw new CaissonError("too_large", `the patch changes ${patches.length} files; the limit is ${FILES_MAX}`);
  return patches;
}

function parseEnvelope(lines: readonly string[]): FilePatch[] {
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
      throw unreadable(`expected a file header, found ${JSON.stringify(line.slice(0, 80))}`, at);
    }
    const path = header[2].trim();
    if (header[1] === "Delete") patches.push({ kind: "delete", path });
    else if (header[1] === "Add") {
      const content: string[] = [];
      for (; inSection(); at++) {
        const added = lines[at] ?? "";
        if (!added.startsWith("+")) throw unreadable("every line of a new file must begin with +", at + 1);
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
  throw unreadable("*** End Patch is missing", lines.length);
}

function parseHunks(lines: readonly string[], offset: number): Hunk[] {
  const hunks: Hunk[] = [];
  const begin = (): Hunk => {
    const hunk: Hunk = { anchors: [], oldStart: null, atEnd: false, lines: [] };
    hunks.push(hunk);
    return hunk;
  };
  for (const [index, line] of lines.entries()) {
    const last = hunks.at(-1);
    if (line === "*** End of File") (last ?? begin()).atEnd = true;
    else if (line.startsWith("@@")) {
      // Two anchors in a row belong to one hunk: the search for the second starts at the first.
      const hunk = last && last.lines.length === 0 ? last : begin();
      const anchor = line.replace(/^@@( -\d+(,\d+)? \+\d+(,\d+)? @@)?/, "").trim();
      if (anchor !== "") hunk.anchors.push(anchor);
    } else (last ?? begin()).lines.push(hunkLine(line, offset + index + 1));
  }
  for (const hunk of hunks) dropTrailingBlanks(hunk);
  return hunks.filter((hunk) => hunk.lines.length > 0);
}
