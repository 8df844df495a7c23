import type { JobFacts } from "../../contract/durable/durable-job.ts";
import type { ShipStep } from "../../contract/ship/ship.ts";
import type { NewShipEvent } from "../../contract/ship/ship-event.ts";
import type { ShipFacts } from "../../contract/ship/ship-facts.ts";
import type { Effect, JobDecision } from "../durable/kind.ts";

/** A step of a ship, with everything needed to perform it. */
export interface ShipEffect extends Effect {
  step: ShipStep;
  attempt: number;
  ship: Readonly<ShipFacts>;
}

/** Decides the next step from the recorded events alone. */
export function decideShip(
  ship: ShipFacts,
  { facts, now }: { facts: Pick<JobFacts, "id" | "cancelRequested">; now: Date },
): JobDecision<NewShipEvent, ShipEffect> {
  const { step, failure, attempts } = ship;
  // Even a cancelled ship waits for the outcome of a started step, because only the outcome shows what we must close.
  if (step !== null && failure === null)
    return { effects: [{ id: `${facts.id}/${ship.begun}`, step, attempt: attempts, ship: structuredClone(ship) }] };
  if (ship.isBranchDone) return { end: { finish: "completed", text: "merged" } };
  if (ship.isClosed) return { end: { finish: "cancelled", text: null } };
  const next = nextStep(ship, { isCancelled: facts.cancelRequested !== null });
  if (failure !== null && (step === next || next === "open")) {
    if (failure.nextAt === null) return { effects: [], waits: { person: failure.error.message } };
    const due = new Date(failure.nextAt);
    if (due > now) return { effects: [], waits: { due } };
  }
  if (next === "open") return { effects: [], waits: { person: "May it be merged?" } };
  return { append: [{ type: "ship.step_started", data: { step: next, attempt: step === next ? attempts + 1 : 1 } }] };
}

function nextStep(ship: ShipFacts, { isCancelled }: { isCancelled: boolean }): ShipStep | "open" {
  if (ship.merged !== null) return "remove_branch";
  if (isCancelled) return "close";
  if (ship.committed === null) return "commit";
  if (ship.pushed === null) return "push";
  if (ship.request === null) return "request";
  if (!ship.isMergeAsked) return "open";
  return ship.isChecked ? "merge" : "check";
}

/** Pauses between attempts. After the last one, a person has to step in. */
const PAUSES_MS = [1_000, 5_000, 30_000, 2 * 60_000, 10 * 60_000] as const;
/** Pauses while a forge works out whether the pull request can be merged, or waits for one of its checks. */
const CHECK_PAUSES_MS = [2_000, 5_000, 15_000, 60_000, 5 * 60_000] as const;
const CHECKS_MAX = 300;

/** Returns the pause before the next attempt, or null after the last one. */
export function pauseAfter(step: ShipStep, { attempt, retryAfterMs }: { attempt: number; retryAfterMs: number }): number | null {
  if (step === "check") {
    const pauseMs = CHECK_PAUSES_MS[Math.min(attempt, CHECK_PAUSES_MS.length) - 1] as number;
    return attempt >= CHECKS_MAX ? null : Math.max(pauseMs, retryAfterMs);
  }
  const pauseMs = PAUSES_MS[attempt - 1];
  return pauseMs === undefined ? null : Math.max(pauseMs, retryAfterMs);
}
