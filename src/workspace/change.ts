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
}

export type ChangeKind = "added" | "removed" | "modified" | "renamed";

export function kindOf(change: Change): ChangeKind {
  if (change.from !== null) return "renamed";
  if (change.before === null) return "added";
  return change.after === null ? "removed" : "modified";
}

export const isText = (content: Buffer) => !content.subarray(0, 8000).includes(0);

export function sameSide(a: FileSide | null, b: FileSide | null): boolean {
  if (a === null || b === null) return a === b;
  return a.kind === b.kind && a.mode === b.mode && a.content.equals(b.content);
}
