import type { Turn } from "../lib/turns.ts";
import type { RunState } from "./run-state.ts";

/** What a run does without a wait, at the event it is at: see `src/station/poison/`. */
export function turnOf({ run, position, callsEnded }: Pick<RunState, "run" | "position" | "callsEnded">): Turn {
  return { stream: `run/${run}`, seq: position + callsEnded };
}
