import { createHash } from "node:crypto";
import { CaissonError } from "../../contract/error/error.ts";
import { type Change, type Changes, type FileSide, gitMode, sameSide } from "../../workspace/change.ts";

/** The files that a session changed, by path; null for a removed file. */
export type ChangedFiles = ReadonlyMap<string, FileSide | null>;

/** Treats a moved file as removed from its old path and added at the new one. */
export function changedFiles({ changes }: { changes: readonly Change[] }): Map<string, FileSide | null> {
  const files = new Map<string, FileSide | null>();
  for (const { path, from, after } of changes) {
    if (from !== null) files.set(from, null);
    files.set(path, after);
  }
  return files;
}

/**
 * Returns the original version of every file that any of the sessions changed. Throws `conflict` if the sessions
 * disagree, because then the folder below them changed while they were read.
 */
export function baseFiles(all: readonly Pick<Changes, "changes">[]): Map<string, FileSide> {
  const base = new Map<string, FileSide | null>();
  const note = (path: string, side: FileSide | null) => {
    const known = base.get(path);
    if (known !== undefined && !sameSide(known, side))
      throw new CaissonError("conflict", `${JSON.stringify(path)} changed while the sessions were being compared`, {
        hint: "Try again.",
      });
    base.set(path, side);
  };
  for (const change of all.flatMap(({ changes }) => changes)) {
    note(change.from ?? change.path, change.before);
    if (change.from !== null) note(change.path, null);
  }
  return new Map([...base].flatMap(([path, side]) => (side === null ? [] : [[path, side] as const])));
}

/** Returns a digest that shows whether a session has changed since. */
export function digestOf(changes: readonly Change[]): string {
  const hash = createHash("sha256");
  for (const [path, side] of [...changedFiles({ changes })].sort(([a], [b]) => (a < b ? -1 : 1))) {
    hash.update(`${path.length}:${path}\0${side === null ? "-" : `${gitMode(side)} ${side.content.length}`}\0`);
    if (side !== null) hash.update(side.content);
  }
  return hash.digest("hex").slice(0, 32);
}
