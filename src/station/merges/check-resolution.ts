import type { ConflictedFile } from "../../contract/merge/merge-event.ts";
import { type FileSide, isText, sameSide } from "../../workspace/change.ts";
import { isSidesFile, type Side, sideFile } from "./conflict-files.ts";
import type { ChangedFiles } from "./file-tree.ts";

/** How many paths a complaint lists. */
const NAMED_MAX = 5;
const MARKER = /^(?:<{7}|\|{7}|={7}|>{7})(?: |$)/;

/**
 * Returns null if a conflict was resolved, or what is wrong with the resolution. Only the files in conflict may differ
 * from what git left (`conflicted`); they must not contain a marker, and must keep everything outside the conflicts in
 * order.
 */
export function checkResolution(files: readonly ConflictedFile[], conflicted: ChangedFiles, resolved: ChangedFiles): string | null {
  const inConflict = new Set(files.map(({ path }) => path));
  const others = [...new Set([...conflicted.keys(), ...resolved.keys()])].filter((path) => !inConflict.has(path) && !isSidesFile(path));
  const touched = others.filter((path) => !isSame(conflicted, resolved, path));
  if (touched.length > 0) return `Files that are not in conflict were changed: ${listPaths(touched)}.`;
  const marked = files.flatMap(({ path }, index) => (leftMarkers(path, index, { conflicted, resolved }) ? [path] : []));
  if (marked.length > 0) return `Conflict markers are left in ${listPaths(marked)}.`;
  const texts = files.flatMap((file, index) => (file.kind === "content" || file.kind === "added_twice" ? [{ ...file, index }] : []));
  const content = ({ path, index }: { path: string; index: number }) =>
    // A path without a change has its original content.
    resolved.has(path) ? (resolved.get(path) ?? null) : (conflicted.get(sideFile(index, "base")) ?? null);
  const missingPaths = texts.filter((file) => content(file) === null).map(({ path }) => path);
  if (missingPaths.length > 0) return `Files that neither side removed are missing: ${listPaths(missingPaths)}.`;
  const lost = texts.filter((file) => losesOtherChanges(conflicted.get(file.path) ?? null, content(file))).map(({ path }) => path);
  return lost.length === 0 ? null : `Lines outside the conflict were removed, changed or moved in ${listPaths(lost)}.`;
}

/** A path that is missing in a map has not changed. */
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

/** Everything that git left outside the markers must still exist, piece by piece. */
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

/** Returns the lines between conflicts. */
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

function listPaths(paths: readonly string[]): string {
  const some = paths.slice(0, NAMED_MAX).map((path) => JSON.stringify(path.slice(0, 200)));
  return paths.length > NAMED_MAX ? `${some.join(", ")} and ${paths.length - NAMED_MAX} more` : some.join(", ");
}
