import type { RunEvent } from "../../contract/run/run-event.ts";
import type { RunVerbs } from "../../verbs/runs.ts";
import type { RunView } from "../runs/run-view.ts";
import { bold, type Line, line, lines } from "../terminal/line.ts";
import type { Question } from "./conversation.ts";

/** The number of rows of the earlier turn that are shown again. */
const ROWS_MAX = 30;

export interface EarlierTurn {
  /** The last rows of the previous turn. */
  lines: Line[];
  /** Unanswered questions. */
  asked: Question[];
}

/** Reads what a run did before it is continued. The view receives every event because later ones refer to them. */
export async function readEarlierTurn(runs: RunVerbs, run: string, view: RunView): Promise<EarlierTurn> {
  const questions = new Map<string, Question>();
  let turnLines: Line[] = [];
  for await (const { seq: _, ...event } of runs.events(run)) {
    const messageLines = saidBy(event);
    if (messageLines !== null) turnLines = messageLines;
    const rows = view.lines(event);
    if (messageLines === null && event.type !== "message.received") turnLines.push(...rows);
    if (event.type === "permission.asked") questions.set(event.data.question, event.data);
    if (event.type === "permission.answered") questions.delete(event.data.question);
    if (event.type === "run.ended") questions.clear();
  }
  return { lines: turnLines.slice(-ROWS_MAX), asked: [...questions.values()] };
}

/** Returns the user message that started a turn, or null for other events. */
function saidBy(event: RunEvent): Line[] | null {
  if (event.type === "run.created") return saidLines(event.data.task);
  return event.type === "message.received" && event.data.source === "user" ? saidLines(event.data.text) : null;
}

export function saidLines(text: string): Line[] {
  return lines(text).map((row, index) => line`${index === 0 ? bold("› ") : "  "}${row}`);
}
