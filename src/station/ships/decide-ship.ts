import type { DrivenFacts } from "../../contract/driven.ts";
import type { ShipStep } from "../../contract/ship.ts";
import type { NewShipEvent } from "../../contract/ship-event.ts";
import type { ShipFacts } from "../../contract/ship-facts.ts";
import type { Decision, Effect } from "../driven/kind.ts";

/** A step of a ship, with everything that it has to know. */
export interface ShipEffect extends Effect {
  step: ShipStep;
  attempt: number;
  ship: Readonly<ShipFacts>;
}

/** What is to be done next, of what happened and nothing else. */
export function decideShip(
  ship: ShipFacts,
  { facts, now }: { facts: Pick<DrivenFacts, "id" | "cancelRequested">; now: Date },
): Decision<NewShipEvent, ShipEffect> {
  const { step, failure, attempts } = ship;
  // What was begun is brought to its outcome, also when it is cancelled: only then is it known what to close.
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
  if (next === "open") return { effects: [], waits: { person: "Shall it be merged?" } };
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

/** Between the attempts; after the last one somebody has to look. */
const PAUSES_MS = [1_000, 5_000, 30_000, 2 * 60_000, 10 * 60_000] as const;
/** While a forge is finding out whether it can be merged, or a check of its own is missing. */
const CHECK_PAUSES_MS = [2_000, 5_000, 15_000, 60_000, 5 * 60_000] as const;
const CHECKS_MAX = 300;

/** How long until the next attempt; null after the last. */
export function pauseAfter(step: ShipStep, { attempt, retryAfterMs }: { attempt: number; retryAfterMs: number }): number | null {
  if (step === "check") {
    const pauseMs = CHECK_PAUSES_MS[Math.min(attempt, CHECK_PAUSES_MS.length) - 1] as number;
    return attempt >= CHECKS_MAX ? null : Math.max(pauseMs, retryAfterMs);
  }
  const pauseMs = PAUSES_MS[attempt - 1];
  return pauseMs === undefined ? null : Math.max(pauseMs, retryAfterMs);
}
