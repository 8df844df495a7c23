import { CaissonError } from "../../contract/error/error.ts";
import type { Hunk } from "./hunk.ts";

/**
 * Applies the hunks in order. Finds each one's context in the text exactly, or ignoring white space at line ends; of
 * several matches, takes the one nearest to the line number in the patch. Lines keep their line ends, and lines added
 * to a CRLF file get CRLF. Throws `conflict` naming the hunk that does not apply.
 */
export function applyHunks(text: string, hunks: readonly Hunk[], path: string): string {
  let endsWithNewline = text.endsWith("\n") || text === "";
  const lines = text === "" ? [] : (endsWithNewline ? text.slice(0, -1) : text).split("\n");
  const returns = lines.length > 0 && lines.filter((line) => line.endsWith("\r")).length * 2 > lines.length ? "\r" : "";
  let from = 0;
  let shift = 0;
  for (const [index, hunk] of hunks.entries()) {
    const start = afterAnchors(lines, hunk, from);
    const old = hunk.lines.filter((line) => line.sign !== "+").map((line) => line.text);
    const hint = hunk.oldStart === null ? null : hunk.oldStart - (old.length === 0 ? 0 : 1) + shift;
    const at = start === -1 ? -1 : find(lines, old, { from: start, hint, atEnd: hunk.atEnd, anchored: hunk.anchors.length > 0 });
    if (at === -1) throw doesNotFit(path, index, start === -1 ? hunk.anchors : old);
    const fresh: string[] = [];
    let cursor = at;
    for (const line of hunk.lines) {
      if (line.sign === "+") fresh.push(line.text.endsWith("\r") ? line.text : `${line.text}${returns}`);
      else {
        if (line.sign === " ") fresh.push(lines[cursor] ?? line.text);
        cursor += 1;
      }
    }
    const wasLast = at + old.length >= lines.length;
    lines.splice(at, old.length, ...fresh);
    from = at + fresh.length;
    shift += fresh.length - old.length;
    if (wasLast) endsWithNewline = newlineAfter(hunk, endsWithNewline);
  }
  return lines.length === 0 ? "" : `${lines.join("\n")}${endsWithNewline ? "\n" : ""}`;
}

/** Returns whether the last line ends with a newline after the hunk, which may change that at the file's end. */
function newlineAfter(hunk: Hunk, before: boolean): boolean {
  if (hunk.lines.some((line) => line.sign !== "-" && line.noNewline)) return false;
  return hunk.lines.some((line) => line.noNewline) ? true : before;
}

/** Returns the line at which to search for the hunk, or -1 if an anchor is missing. */
function afterAnchors(lines: readonly string[], hunk: Hunk, from: number): number {
  let at = from;
  for (const anchor of hunk.anchors) {
    const below = lines.findIndex((line, number) => number >= at && line.trim() === anchor);
    const found = below === -1 ? lines.findIndex((line) => line.trim() === anchor) : below;
    if (found === -1) return -1;
    at = found;
  }
  return at;
}

function find(
  lines: readonly string[],
  old: readonly string[],
  where: { from: number; hint: number | null; atEnd: boolean; anchored: boolean },
): number {
  if (old.length === 0) {
    if (where.hint !== null) return Math.min(where.hint, lines.length);
    return where.anchored && !where.atEnd ? Math.min(where.from + 1, lines.length) : lines.length;
  }
  for (const same of [(a: string, b: string) => a === b, (a: string, b: string) => a.trimEnd() === b.trimEnd()]) {
    for (const start of [where.from, 0]) {
      const places = placesOf(lines, old, { start, same });
      if (places.length > 0) return choose(places, where);
    }
  }
  return -1;
}

function placesOf(
  lines: readonly string[],
  old: readonly string[],
  options: { start: number; same: (a: string, b: string) => boolean },
): number[] {
  const places: number[] = [];
  for (let at = options.start; at + old.length <= lines.length; at++) {
    if (old.every((line, offset) => options.same(lines[at + offset] ?? "", line))) places.push(at);
  }
  return places;
}

function choose(places: readonly number[], where: { hint: number | null; atEnd: boolean }): number {
  if (where.atEnd) return places.at(-1) ?? -1;
  const { hint } = where;
  if (hint === null) return places[0] ?? -1;
  return places.reduce((best, place) => (Math.abs(place - hint) < Math.abs(best - hint) ? place : best));
}

function doesNotFit(path: string, index: number, missing: readonly string[]): CaissonError {
  const excerpt = JSON.stringify(missing.slice(0, 5).join("\n"));
  return new CaissonError("conflict", `hunk ${index + 1} does not apply to ${path}: lines not found: ${excerpt}`, {
    hint: "Read the file and base the patch on its current content.",
  });
}
