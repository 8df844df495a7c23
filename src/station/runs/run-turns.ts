import type { Log } from "../../log/log.ts";
import { runEvents } from "./run-events.ts";

/** From what somebody said to a run to its next end. */
export interface Turn {
  /** The number of the event that began it. */
  seq: number;
  at: string;
  /** How many steps the run had taken before it. */
  stepsBefore: number;
}

/** A run that was only resumed is in the same turn as before. */
export async function turnsOf(log: Log, run: string): Promise<Turn[]> {
  const turns: Turn[] = [];
  let reopened: Turn | null = null;
  let steps = 0;
  for await (const event of runEvents(log, run, {})) {
    if (event.type === "run.created") turns.push({ seq: event.seq, at: event.at, stepsBefore: steps });
    else if (event.type === "run.reopened") reopened = { seq: event.seq, at: event.at, stepsBefore: steps };
    else if (event.type === "run.claimed") reopened = null;
    else if (event.type === "step.started") steps = event.data.step;
    else if (reopened !== null && event.type === "message.received" && event.data.source === "user") {
      turns.push(reopened);
      reopened = null;
    }
  }
  return turns;
}
