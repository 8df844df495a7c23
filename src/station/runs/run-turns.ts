import type { Log } from "../../log/log.ts";
import { runEvents } from "../runs/run-events.ts";
import type { Turn } from "../vocabulary/turn.ts";

/**
 * Returns a run's turns, without those that were rewound. A resumed run without a new message stays in the same turn.
 * The turns that a fork inherits are those of the other run, and its own begin with the fork.
 */
export async function turnsOf(log: Log, run: string): Promise<Turn[]> {
  const turns: Turn[] = [];
  let reopened: Turn | null = null;
  let steps = 0;
  for await (const event of runEvents(log, run, {})) {
    if (event.type === "run.created") turns.push({ seq: event.seq, at: event.at, stepsBefore: steps });
    else if (event.type === "run.reopened") reopened = { seq: event.seq, at: event.at, stepsBefore: steps };
    else if (event.type === "run.forked") turns.splice(0, turns.length, { seq: event.seq, at: event.at, stepsBefore: steps });
    else if (event.type === "run.rewound") {
      while ((turns.at(-1)?.seq ?? 0) > event.data.toSeq) turns.pop();
      steps = event.data.toStep;
    } else if (event.type === "run.claimed") reopened = null;
    else if (event.type === "step.started") steps = event.data.step;
    else if (reopened !== null && event.type === "message.received" && event.data.source === "user") {
      turns.push(reopened);
      reopened = null;
    }
  }
  return turns;
}
