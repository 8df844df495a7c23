import type { Log } from "../../log/log.ts";
import { runEvents } from "../runs/run-events.ts";
import type { Turn } from "../vocabulary/turn.ts";

/** Returns a run's turns. A resumed run without a new message stays in the same turn. */
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
