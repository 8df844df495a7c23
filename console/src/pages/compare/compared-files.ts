import type { ChangedFile } from "../../../../src/contract/session/session-verbs.ts";

export const comparedGroups = ["different", "one", "other", "same"] as const;
export type ComparedGroup = (typeof comparedGroups)[number];

/** A file that at least one of two runs changed. */
export interface ComparedFile {
  path: string;
  /** `one` and `other`: only that run changed it. `same`: both changed it, to the same content. */
  group: ComparedGroup;
  one: ChangedFile | null;
  other: ChangedFile | null;
}

type Changed = readonly ChangedFile[];

/** Compares the changes of two runs by path and content. The old path of a renamed file counts as removed. */
export function comparedFiles(one: Changed, other: Changed): ComparedFile[] {
  const [left, right] = [sidesOf(one), sidesOf(other)];
  const paths = [...new Set([...left.keys(), ...right.keys()])];
  const files = paths.map((path): ComparedFile => {
    const [a, b] = [left.get(path), right.get(path)];
    const group = a === undefined ? "other" : b === undefined ? "one" : a.digest === b.digest ? "same" : "different";
    return { path, group, one: a?.file ?? null, other: b?.file ?? null };
  });
  const rank = ({ group }: ComparedFile) => comparedGroups.indexOf(group);
  return files.sort((a, b) => rank(a) - rank(b) || (a.path < b.path ? -1 : 1));
}

/** Returns each changed path with the digest of its content; null if it was removed. */
function sidesOf(files: Changed): Map<string, { file: ChangedFile; digest: string | null }> {
  const sides = new Map<string, { file: ChangedFile; digest: string | null }>();
  for (const file of files) {
    if (file.from !== null) sides.set(file.from, { file, digest: null });
  }
  for (const file of files) sides.set(file.path, { file, digest: file.digest });
  return sides;
}

export interface LineCounts {
  files: number;
  added: number;
  removed: number;
}

export function countLines(files: Changed): LineCounts {
  const sum = (key: "linesAdded" | "linesRemoved") => files.reduce((total, file) => total + file[key], 0);
  return { files: files.length, added: sum("linesAdded"), removed: sum("linesRemoved") };
}
