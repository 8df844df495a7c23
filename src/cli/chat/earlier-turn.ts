import type { RunEvent } from "../../contract/run-event.ts";
import type { RunVerbs } from "../../station/runs/verbs.ts";
import type { RunView } from "../runs/run-view.ts";
import { bold, type Line, line, lines } from "../terminal/line.ts";
import type { Question } from "./conversation.ts";

/** Rows of what was said before that are shown again. */
const ROWS_MAX = 30;

export interface EarlierTurn {
  /** The end of what was said last. */
  lines: Line[];
  /** Questions that nobody has answered. */
  asked: Question[];
}

/** Reads what a run did before it is continued. The view learns of all of it: what comes refers to it. */
export async function readEarlierTurn(runs: RunVerbs, run: string, view: RunView): Promise<EarlierTurn> {
  const asked = new Map<string, Question>();
  let shown: Line[] = [];
  for await (const { seq: _, ...event } of runs.events(run)) {
    const said = saidBy(event);
    if (said !== null) shown = said;
    const rows = view.lines(event);
    if (said === null && event.type !== "message.received") shown.push(...rows);
    if (event.type === "permission.asked") asked.set(event.data.question, event.data);
    if (event.type === "permission.answered") asked.delete(event.data.question);
    if (event.type === "run.ended") asked.clear();
  }
  return { lines: shown.slice(-ROWS_MAX), asked: [...asked.values()] };
}

/** What somebody said to begin a turn. */
function saidBy(event: RunEvent): Line[] | null {
  if (event.type === "run.created") return saidLines(event.data.task);
  return event.type === "message.received" && event.data.source === "user" ? saidLines(event.data.text) : null;
}

export function saidLines(text: string): Line[] {
  return lines(text).map((row, index) => line`${index === 0 ? bold("› ") : "  "}${row}`);
}
