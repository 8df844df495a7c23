import { bold, dim, type Line, line } from "../terminal/line.ts";
import { cutToWidth, displayWidth, visibleText } from "../terminal/plain-text.ts";
import type { ConversationState, Question } from "./conversation.ts";
import type { EditedText } from "./edit-text.ts";
import { inputRows } from "./input-rows.ts";
import type { Footer } from "./screen.ts";

export interface FooterParts {
  state: ConversationState;
  /** What the agent is doing just now. */
  live: readonly Line[];
  question: Question | null;
  /** Whether the next key answers it. */
  takesAnswer: boolean;
  edited: EditedText;
  candidates: readonly string[];
  /** What was just said about the last key, in place of the hints. */
  notice: string | null;
  /** The model and what it has cost. */
  about: string;
}

const MARK = "› ";
const LIVE_ROWS_MAX = 6;

/** What stands below a conversation: what the agent is doing, what is asked or typed, and what can be done. */
export function chatFooter(parts: FooterParts, size: { cols: number; rows: number }): Footer {
  // The last column stays free: a terminal that writes into it may go to the next row.
  const columns = Math.max(4, size.cols - 1);
  const live = parts.live.slice(-Math.min(LIVE_ROWS_MAX, Math.max(0, Math.floor(size.rows / 3))));
  const below = [...candidateRows(parts.candidates, columns), dim(cutToWidth(hintOf(parts), columns))];
  if (parts.question !== null && parts.takesAnswer) {
    const asked = cutToWidth(`[${choicesOf(parts.question)}] `, columns);
    return { rows: [...live, bold(asked), ...below], cursor: { row: live.length, column: displayWidth(asked) } };
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
      return "y go on, n end the run";
  }
}

/** In one row; how many are left out is said. */
function candidateRows(candidates: readonly string[], columns: number): Line[] {
  if (candidates.length === 0) return [];
  const shown: string[] = [];
  for (const name of candidates.map(visibleText)) {
    const text = [...shown, name].join("  ");
    if (shown.length > 0 && displayWidth(text) > columns - 12) break;
    shown.push(name);
  }
  const more = candidates.length - shown.length;
  return [dim(cutToWidth(`${shown.join("  ")}${more > 0 ? `  … ${more} more` : ""}`, columns))];
}

function hintOf({ state, question, notice, about }: FooterParts): string {
  if (notice !== null) return notice;
  if (question !== null) return "the agent waits for your answer · Ctrl-C stops it";
  switch (state) {
    case "idle":
      return `/help · ${about}`;
    case "working":
      return `Enter steers it · Ctrl-C holds it · ${about}`;
    case "held":
      return "Held. Type to steer it, Enter to go on, Ctrl-C again to stop.";
    case "stopping":
      return "stopping …";
  }
}
