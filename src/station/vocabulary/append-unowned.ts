import { CaissonError } from "../../contract/error/error.ts";
import { makeEvent } from "../../contract/event/event-family.ts";
import { type NewRunEvent, runEvents } from "../../contract/run/run-event.ts";
import type { RunFacts } from "../../contract/run/run-facts.ts";
import type { Log } from "../../log/log.ts";
import { headOfRun } from "./head-of-run.ts";
import { runStream } from "./station-names.ts";

/** Events that a person, another process or a program inside may append to a run without holding its lease. */
type UnownedEvent = Extract<
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
      | "run.noticed"
      | "run.queued"
      | "run.prioritized"
      | "run.labelled"
      | "run.rewind_started"
      | "run.rewind_failed";
  }
>;

/** A run that streams appends several times a second; losing this many races in a row means that something is wrong. */
const RACES_MAX = 1000;

/**
 * Appends events to a run that this process does not drive. `make` receives the current facts and returns one event,
 * several that belong together, or null. They are appended only if the run has not changed since; otherwise we call
 * `make` again. So we never acknowledge anything after the run's end, and of two answers only one counts. Throws
 * `conflict` for a run that has ended, unless `alsoEnded` is set, `not_found`, and what `make` throws.
 */
export async function appendUnowned(
  log: Log,
  run: string,
  make: (facts: RunFacts, seq: number) => UnownedEvent | readonly UnownedEvent[] | null,
  { alsoEnded = false }: { alsoEnded?: boolean } = {},
): Promise<void> {
  for (let races = 0; ; races++) {
    const { facts, seq } = await headOfRun(log, run);
    if (facts.status === "ended" && !alsoEnded) throw runEndedError(run, facts);
    const result = make(facts, seq);
    const events = result === null ? [] : [result].flat();
    if (events.length === 0) return;
    try {
      const stored = events.map((each: UnownedEvent) => makeEvent(runEvents, each));
      await log.append(runStream(run), stored, { expectedSeq: seq });
      return;
    } catch (error) {
      if (!(error instanceof CaissonError) || error.code !== "conflict" || races >= RACES_MAX) throw error;
    }
  }
}

export function runEndedError(run: string, { finish }: Pick<RunFacts, "finish">): CaissonError {
  return new CaissonError("conflict", `the run ${run} has ended (${finish})`, {
    hint: `Continue it: caisson run --continue ${run} "…"`,
    details: { finish },
  });
}
