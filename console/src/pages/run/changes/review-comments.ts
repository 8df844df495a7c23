/** A place in a file's changes: a line of the old or the new text. Without a line, the whole file. */
export interface DiffPlace {
  side: "before" | "after";
  line: number | null;
  /** The content of the line. */
  code: string;
}

/** A user's comment on a place in the agent's changes. */
export interface ReviewComment extends DiffPlace {
  path: string;
  text: string;
}

/** Names a place, in the message and above its comment. */
export function placeName({ path, side, line }: Pick<ReviewComment, "path" | "side" | "line">): string {
  if (line === null) return path;
  return `${path}:${line}${side === "before" ? " (before the change)" : ""}`;
}

/** Combines the comments into one message, sorted by file and line. */
export function reviewMessage(comments: readonly ReviewComment[]): string {
  const sorted = comments.toSorted((one, other) =>
    one.path === other.path ? (one.line ?? 0) - (other.line ?? 0) : one.path < other.path ? -1 : 1,
  );
  const parts = sorted.map((each) =>
    [placeName(each), ...(each.line === null ? [] : [`> ${each.code.trim()}`]), each.text.trim()].join("\n"),
  );
  return `Please look at these comments on your changes:\n\n${parts.join("\n\n")}`;
}
