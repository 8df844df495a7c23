import { createHash } from "node:crypto";
import { CaissonError } from "../../contract/error.ts";
import { type Change, type Changes, type FileSide, gitMode, sameSide } from "../../workspace/change.ts";

/** What a session made of files, by path; null: it removed it. */
export type ChangedFiles = ReadonlyMap<string, FileSide | null>;

/** A change that moved a file is one that removed it here and made it there. */
export function changedFiles({ changes }: { changes: readonly Change[] }): Map<string, FileSide | null> {
  const files = new Map<string, FileSide | null>();
  for (const { path, from, after } of changes) {
    if (from !== null) files.set(from, null);
    files.set(path, after);
  }
  return files;
}

/**
 * What all of them began from, of the files that any of them changed. Throws `conflict` where they do not agree: then
 * somebody changed the folder below them while they were looked at.
 */
export function baseFiles(all: readonly Pick<Changes, "changes">[]): Map<string, FileSide> {
  const base = new Map<string, FileSide | null>();
  const note = (path: string, side: FileSide | null) => {
    const known = base.get(path);
    if (known !== undefined && !sameSide(known, side))
      throw new CaissonError("conflict", `${JSON.stringify(path)} was changed while the sessions on it were looked at`, {
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

/** By this it is known whether a session changed since. */
export function digestOf(changes: readonly Change[]): string {
  const hash = createHash("sha256");
  for (const [path, side] of [...changedFiles({ changes })].sort(([a], [b]) => (a < b ? -1 : 1))) {
    hash.update(`${path.length}:${path}\0${side === null ? "-" : `${gitMode(side)} ${side.content.length}`}\0`);
    if (side !== null) hash.update(side.content);
  }
  return hash.digest("hex").slice(0, 32);
}
