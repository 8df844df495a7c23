import { CaissonError } from "../../contract/error.ts";
import { makeEvent } from "../../contract/event-family.ts";
import { type NewRunEvent, runEvents } from "../../contract/run-event.ts";
import type { RunFacts } from "../../contract/run-facts.ts";
import type { Log } from "../../log/log.ts";
import { headOfRun, runStream } from "./head-of-run.ts";

/** Events that a person, another process or what is inside may add to a run it does not own. */
type ForeignEvent = Extract<
  NewRunEvent,
  {
    type:
      | "message.received"
      | "permission.asked"
      | "permission.answered"
      | "run.stop_requested"
      | "run.paused"
      | "run.continued"
      | `health.${string}`
      | `guardian.${string}`
      | "sandbox.reported"
      | "artifact.stored"
      | "run.queued"
      | "run.prioritized"
      | "run.labelled";
  }
>;

/** A run that streams appends some times a second; losing this many races in a row means something is wrong. */
const RACES_MAX = 1000;

/**
 * Adds what somebody says to a run that is not over. `make` looks at the run as it is and gives the event, or several
 * that are true together, or null when there is nothing to say; it is appended only where that look is still true, and
 * made again otherwise. So nothing is acknowledged that comes after the run's end, and of two answers one counts and
 * the other is refused. Throws `conflict` for a run that has ended, unless it is about one of those, too, `not_found`,
 * and what `make` throws.
 */
export async function appendForeign(
  log: Log,
  run: string,
  make: (facts: RunFacts, seq: number) => ForeignEvent | readonly ForeignEvent[] | null,
  { alsoEnded = false }: { alsoEnded?: boolean } = {},
): Promise<void> {
  for (let races = 0; ; races++) {
    const { facts, seq } = await headOfRun(log, run);
    if (facts.status === "ended" && !alsoEnded) throw hasEnded(run, facts);
    const made = make(facts, seq);
    const events = made === null ? [] : [made].flat();
    if (events.length === 0) return;
    try {
      const stored = events.map((each: ForeignEvent) => makeEvent(runEvents, each));
      await log.append(runStream(run), stored, { expectedSeq: seq });
      return;
    } catch (error) {
      if (!(error instanceof CaissonError) || error.code !== "conflict" || races >= RACES_MAX) throw error;
    }
  }
}

export function hasEnded(run: string, { finish }: Pick<RunFacts, "finish">): CaissonError {
  return new CaissonError("conflict", `the run ${run} has ended (${finish})`, {
    hint: `Continue it: caisson run --continue ${run} "…"`,
    details: { finish },
  });
}
