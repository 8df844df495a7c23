/** A place in what changed in a file: a line of the old or the new text; null: the file as a whole. */
export interface DiffPlace {
  side: "before" | "after";
  line: number | null;
  /** What is in the line. */
  code: string;
}

/** A reader's words about a place in what the agent wrote. */
export interface ReviewComment extends DiffPlace {
  path: string;
  text: string;
}

/** How a place is called in a message and above its comment. */
export function placeName({ path, side, line }: Pick<ReviewComment, "path" | "side" | "line">): string {
  if (line === null) return path;
  return `${path}:${line}${side === "before" ? " (as it was before)" : ""}`;
}

/** The comments as one message, in the order of files and lines. */
export function reviewMessage(comments: readonly ReviewComment[]): string {
  const sorted = comments.toSorted((one, other) =>
    one.path === other.path ? (one.line ?? 0) - (other.line ?? 0) : one.path < other.path ? -1 : 1,
  );
  const parts = sorted.map((each) =>
    [placeName(each), ...(each.line === null ? [] : [`> ${each.code.trim()}`]), each.text.trim()].join("\n"),
  );
  return `Please look at these comments on your changes:\n\n${parts.join("\n\n")}`;
}
