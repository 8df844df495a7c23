import { bold, dim, type Line, line } from "../terminal/line.ts";
import { cutToWidth, displayWidth, visibleText } from "../terminal/plain-text.ts";
import type { ConversationState, Question } from "./conversation.ts";
import type { EditedText } from "./edit-text.ts";
import { inputRows } from "./input-rows.ts";
import type { Footer } from "./screen.ts";

export interface FooterParts {
  state: ConversationState;
  /** The agent's current activity. */
  live: readonly Line[];
  question: Question | null;
  /** Whether the next key answers the question. */
  takesAnswer: boolean;
  edited: EditedText;
  candidates: readonly string[];
  /** A message about the last key, shown instead of the hints. */
  notice: string | null;
  /** The model and the cost so far. */
  about: string;
}

const MARK = "› ";
const LIVE_ROWS_MAX = 6;

/** Lays out the rows below a conversation: the agent's activity, the question or the input, and hints. */
export function chatFooter(parts: FooterParts, size: { cols: number; rows: number }): Footer {
  // The last column stays free because some terminals wrap as soon as it is written.
  const columns = Math.max(4, size.cols - 1);
  const live = parts.live.slice(-Math.min(LIVE_ROWS_MAX, Math.max(0, Math.floor(size.rows / 3))));
  const below = [...candidateRows(parts.candidates, columns), dim(cutToWidth(hintOf(parts), columns))];
  if (parts.question !== null && parts.takesAnswer) {
    const prompt = cutToWidth(`[${choicesOf(parts.question)}] `, columns);
    return { rows: [...live, bold(prompt), ...below], cursor: { row: live.length, column: displayWidth(prompt) } };
  }
  const rowsMax = Math.max(1, size.rows - live.length - below.length - 2);
  const input = inputRows(parts.edited, { columns: columns - MARK.length, rowsMax });
  const rows = input.rows.map((row, index) => line`${index === 0 && input.hiddenAbove === 0 ? bold(MARK) : "  "}${row}`);
  const cursor = { row: live.length + input.cursor.row, column: MARK.length + input.cursor.column };
  return { rows: [...live, ...rows, ...below], cursor };
}

export function choicesOf({ kind }: Pick<Question, "kind">): string {
  switch (kind) {
    case "tool":
      return "y yes, a always, n no";
    case "budget":
      return "y raise it, n end the run";
    case "stuck":
      return "y continue, n end the run";
  }
}

/** Fits the candidates into one row and counts those that it leaves out. */
function candidateRows(candidates: readonly string[], columns: number): Line[] {
  if (candidates.length === 0) return [];
  const shownNames: string[] = [];
  for (const name of candidates.map(visibleText)) {
    const text = [...shownNames, name].join("  ");
    if (shownNames.length > 0 && displayWidth(text) > columns - 12) break;
    shownNames.push(name);
  }
  const more = candidates.length - shownNames.length;
  return [dim(cutToWidth(`${shownNames.join("  ")}${more > 0 ? `  … ${more} more` : ""}`, columns))];
}

function hintOf({ state, question, notice, about }: FooterParts): string {
  if (notice !== null) return notice;
  if (question !== null) return "the agent is waiting for your answer · Ctrl-C stops it";
  switch (state) {
    case "idle":
      return `/help · ${about}`;
    case "working":
      return `Enter steers it · Ctrl-C holds it · ${about}`;
    case "held":
      return "Held. Type to steer it, Enter to continue, Ctrl-C again to stop it.";
    case "stopping":
      return "stopping …";
  }
}
