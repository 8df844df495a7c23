import type { Turn } from "../lib/turns.ts";
import type { RunState } from "./run-state.ts";

/** Returns the turn that a run's synchronous work belongs to at its current event; see `src/station/poison/`. */
export function turnOf({ run, position, callsEnded }: Pick<RunState, "run" | "position" | "callsEnded">): Turn {
  return { stream: `run/${run}`, seq: position + callsEnded };
}
