import type { ConflictedFile } from "../../contract/merge-event.ts";
import { type FileSide, isText, sameSide } from "../../workspace/change.ts";
import { isSidesFile, type Side, sideFile } from "./conflict-files.ts";
import type { ChangedFiles } from "./file-tree.ts";

/** Paths that a complaint names. */
const NAMED_MAX = 5;
const MARKER = /^(?:<{7}|\|{7}|={7}|>{7})(?: |$)/;

/**
 * Whether a conflict was resolved: nothing but its files differs from what git left (`conflicted`), no marker is left
 * in those, and everything in them that was not in conflict is still there, in its order. Null when it was, or what is
 * wrong with it.
 */
export function checkResolution(files: readonly ConflictedFile[], conflicted: ChangedFiles, resolved: ChangedFiles): string | null {
  const inConflict = new Set(files.map(({ path }) => path));
  const others = [...new Set([...conflicted.keys(), ...resolved.keys()])].filter((path) => !inConflict.has(path) && !isSidesFile(path));
  const touched = others.filter((path) => !isSame(conflicted, resolved, path));
  if (touched.length > 0) return `Files were changed that are not in conflict: ${named(touched)}.`;
  const marked = files.flatMap(({ path }, index) => (leftMarkers(path, index, { conflicted, resolved }) ? [path] : []));
  if (marked.length > 0) return `Conflict markers are left in ${named(marked)}.`;
  const texts = files.flatMap((file, index) => (file.kind === "content" || file.kind === "added_twice" ? [{ ...file, index }] : []));
  const content = ({ path, index }: { path: string; index: number }) =>
    // What is not a change is as it was to begin with.
    resolved.has(path) ? (resolved.get(path) ?? null) : (conflicted.get(sideFile(index, "base")) ?? null);
  const gone = texts.filter((file) => content(file) === null).map(({ path }) => path);
  if (gone.length > 0) return `Files were removed that neither side removed: ${named(gone)}.`;
  const lost = texts.filter((file) => losesOtherChanges(conflicted.get(file.path) ?? null, content(file))).map(({ path }) => path);
  return lost.length === 0 ? null : `Lines that were not in conflict are gone, changed or moved in ${named(lost)}.`;
}

/** A path that is not there is as it was to begin with. */
function isSame(a: ChangedFiles, b: ChangedFiles, path: string): boolean {
  return a.has(path) === b.has(path) && sameSide(a.get(path) ?? null, b.get(path) ?? null);
}

function leftMarkers(path: string, index: number, { conflicted, resolved }: { conflicted: ChangedFiles; resolved: ChangedFiles }): boolean {
  const side = resolved.get(path);
  if (side === undefined || side === null || side.kind !== "file" || !isText(side.content)) return false;
  const versions = (["base", "merged", "theirs"] as const).flatMap((each: Side) => linesOf(conflicted.get(sideFile(index, each))));
  const known = new Set(versions);
  return linesOf(side).some((line) => MARKER.test(line) && !known.has(line));
}

/** What git left outside of its markers must be found again, piece by piece. */
function losesOtherChanges(marked: FileSide | null, resolved: FileSide | null): boolean {
  if (marked === null || resolved === null) return false;
  if (resolved.kind !== "file") return true;
  const lines = linesOf(resolved);
  let at = 0;
  for (const piece of piecesOutside(linesOf(marked))) {
    const found = indexOf(lines, piece, at);
    if (found < 0) return true;
    at = found + piece.length;
  }
  return false;
}

/** The lines between conflicts. */
function piecesOutside(lines: readonly string[]): string[][] {
  const pieces: string[][] = [[]];
  let isInside = false;
  for (const line of lines) {
    if (/^<{7} /.test(line)) isInside = true;
    else if (isInside && /^>{7} /.test(line)) {
      isInside = false;
      pieces.push([]);
    } else if (!isInside) pieces.at(-1)?.push(line);
  }
  return pieces.filter((piece) => piece.length > 0 && piece.some((line) => line !== ""));
}

function indexOf(lines: readonly string[], piece: readonly string[], from: number): number {
  for (let at = from; at + piece.length <= lines.length; at++) if (piece.every((line, index) => lines[at + index] === line)) return at;
  return -1;
}

function linesOf(side: FileSide | null | undefined): string[] {
  return side === undefined || side === null ? [] : side.content.toString("utf8").split("\n");
}

function named(paths: readonly string[]): string {
  const some = paths.slice(0, NAMED_MAX).map((path) => JSON.stringify(path.slice(0, 200)));
  return paths.length > NAMED_MAX ? `${some.join(", ")} and ${paths.length - NAMED_MAX} more` : some.join(", ");
}
