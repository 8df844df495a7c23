import { JOB_LABEL } from "../../contract/label/station-labels.ts";
import { isAtFork, type RunFacts } from "../../contract/run/run-facts.ts";
import { roomFor, type TakenRoom } from "./sandbox-room.ts";
import type { ScheduleState } from "./schedule.ts";

/** Builds the schedule's input from the log and the sandboxes. */
export function standing(now: {
  waiting: readonly RunFacts[];
  working: readonly RunFacts[];
  taken: TakenRoom;
}): Pick<ScheduleState, "waiting" | "working" | "taken"> {
  const { runs, sandboxes, memoryBytes } = now.taken;
  const needs = (facts: RunFacts) => (runs.has(facts.run) ? { sandboxes: 0, memoryBytes: 0 } : roomFor(facts.memoryBytes));
  const of = ({ run, owner, session, labels }: RunFacts) => ({ run, owner, session, isPart: Object.hasOwn(labels, JOB_LABEL) });
  // Runs at work that have no sandbox yet are about to create one.
  const about = now.working.map(needs);
  return {
    waiting: now.waiting.map((facts) => ({
      ...of(facts),
      priority: facts.priority,
      sinceMs: Date.parse(facts.queued?.since ?? facts.createdAt),
      startAtMs: facts.queued?.startAt == null ? null : Date.parse(facts.queued.startAt),
      isHeld: (facts.paused?.why === "user" || isAtFork(facts)) && facts.stopRequested === null,
      needs: needs(facts),
    })),
    working: now.working.map(of),
    taken: {
      sandboxes: about.reduce((sum, each) => sum + each.sandboxes, sandboxes),
      memoryBytes: about.reduce((sum, each) => sum + each.memoryBytes, memoryBytes),
    },
  };
}

/** Returns whether anything that affects a run's waiting has changed. */
export function waitsOtherwise(before: RunFacts, now: RunFacts): boolean {
  const of = ({ priority, paused, queued, stopRequested }: RunFacts) => JSON.stringify([priority, paused, queued, stopRequested]);
  return of(before) !== of(now);
}
