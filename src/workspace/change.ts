/** A file as it is on one side of a change. Folders are not files: they come and go with what is in them. */
export interface FileSide {
  kind: "file" | "link";
  /** 0o644 or 0o755 for files; git knows no others, and neither does a diff. */
  mode: number;
  /** A link's target is its content. */
  content: Buffer;
}

export interface Change {
  /** Relative to the workspace, with /. */
  path: string;
  /** For a rename: where it was. */
  from: string | null;
  before: FileSide | null;
  after: FileSide | null;
  /** The user's own file was changed after the agent's copy of it was made: applying would undo that. */
  changedOutside: boolean;
}

/** Something that differs and cannot be shown or applied, and why. */
export interface LeftOut {
  path: string;
  reason: string;
}

export interface Changes {
  changes: Change[];
  leftOut: LeftOut[];
  /** New files that the user's own `.gitignore` files name: left out, and counted. */
  ignored: number;
}

export type ChangeKind = "added" | "removed" | "modified" | "renamed";

export function kindOf(change: Change): ChangeKind {
  if (change.from !== null) return "renamed";
  if (change.before === null) return "added";
  return change.after === null ? "removed" : "modified";
}

const TEXT_BYTES_LOOKED_AT = 8000;

/** As git decides it. */
export const isText = (content: Buffer) => !content.subarray(0, TEXT_BYTES_LOOKED_AT).includes(0);

export function sameSide(a: FileSide | null, b: FileSide | null): boolean {
  if (a === null || b === null) return a === b;
  return a.kind === b.kind && a.mode === b.mode && a.content.equals(b.content);
}

/** Whether a path is one of those named, or lies in a folder that is. */
export function isWithin(path: string, named: readonly string[]): boolean {
  return named.some((each) => each === "." || path === each || path.startsWith(`${each}/`));
}

/** A test of whether a path is one of these or below one, which costs the same however many there are. */
export function pathsBelow(named: readonly string[]): (path: string) => boolean {
  const all = new Set(named);
  return (path) => {
    if (all.size === 0) return false;
    for (let end = path.length; end > 0; end = path.lastIndexOf("/", end - 1)) if (all.has(path.slice(0, end))) return true;
    return false;
  };
}

export const gitMode = (side: FileSide) => (side.kind === "link" ? "120000" : side.mode & 0o111 ? "100755" : "100644");
