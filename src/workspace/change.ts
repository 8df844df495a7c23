/** One side of a changed file. Folders have no sides: they exist as long as they contain files. */
export interface FileSide {
  kind: "file" | "link";
  /** 0o644 or 0o755 for files, the only modes that git and diffs know. */
  mode: number;
  /** The content; for a link, its target. */
  content: Buffer;
}

export interface Change {
  /** Relative to the workspace, with /. */
  path: string;
  /** The old path of a renamed file; otherwise null. */
  from: string | null;
  before: FileSide | null;
  after: FileSide | null;
  /** True if the user changed the file after the agent's copy was made: applying would undo that. */
  changedOutside: boolean;
}

/** A difference that cannot be shown or applied, and why. */
export interface LeftOut {
  path: string;
  reason: string;
}

export interface Changes {
  changes: Change[];
  leftOut: LeftOut[];
  /** The number of new files that the user's own `.gitignore` files exclude. */
  ignored: number;
}

export type ChangeKind = "added" | "removed" | "modified" | "renamed";

export function kindOf(change: Change): ChangeKind {
  if (change.from !== null) return "renamed";
  if (change.before === null) return "added";
  return change.after === null ? "removed" : "modified";
}

const TEXT_BYTES_LOOKED_AT = 8000;

/** Decides like git whether content is text. */
export const isText = (content: Buffer) => !content.subarray(0, TEXT_BYTES_LOOKED_AT).includes(0);

export function sameSide(a: FileSide | null, b: FileSide | null): boolean {
  if (a === null || b === null) return a === b;
  return a.kind === b.kind && a.mode === b.mode && a.content.equals(b.content);
}

/** Returns whether a path is one of these paths, or inside one of them. */
export function isBelowAny(path: string, named: readonly string[]): boolean {
  return named.some((each) => each === "." || path === each || path.startsWith(`${each}/`));
}

/** Returns a test whether a path is one of these paths or inside one. Its cost does not depend on their number. */
export function pathsBelow(named: readonly string[]): (path: string) => boolean {
  const all = new Set(named);
  return (path) => {
    if (all.size === 0) return false;
    for (let end = path.length; end > 0; end = path.lastIndexOf("/", end - 1)) if (all.has(path.slice(0, end))) return true;
    return false;
  };
}

export const gitMode = (side: FileSide) => (side.kind === "link" ? "120000" : side.mode & 0o111 ? "100755" : "100644");
