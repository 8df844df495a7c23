/** A reader's words about a line of what the agent wrote. */
export interface ReviewComment {
  path: string;
  line: number;
  /** What stands there. */
  code: string;
  text: string;
}

/** The comments as one message, in the order of files and lines. */
export function reviewMessage(comments: readonly ReviewComment[]): string {
  const sorted = comments.toSorted((one, other) => (one.path === other.path ? one.line - other.line : one.path < other.path ? -1 : 1));
  const parts = sorted.map(({ path, line, code, text }) => `${path}:${line}\n> ${code.trim()}\n${text.trim()}`);
  return `Please look at these comments on your changes:\n\n${parts.join("\n\n")}`;
}
