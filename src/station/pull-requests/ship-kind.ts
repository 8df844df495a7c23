import { CaissonError } from "../../contract/error/error.ts";
import { type NewShipEvent, shipEvents } from "../../contract/ship/ship-event.ts";
import { applyToShipFacts, emptyShipFacts, type ShipFacts } from "../../contract/ship/ship-facts.ts";
import type { Kind } from "../durable/kind.ts";
import { decideShip, type ShipEffect } from "./decide-ship.ts";
import { shipNames } from "./ship-names.ts";
import { performStep, type ShipParts } from "./ship-steps.ts";
import { stepFailure } from "./step-failure.ts";

export type ShipKind = Kind<ShipFacts, NewShipEvent, ShipEffect>;

/** Creates the definition by which the driver drives ships. */
export function createShipKind(parts: ShipParts & { now: () => Date }): ShipKind {
  return {
    ...shipNames,
    events: shipEvents,
    empty: emptyShipFacts,
    apply: (ship, event) => applyToShipFacts(ship, event),
    decide: decideShip,
    async perform({ step, ship }, { facts: { id, owner }, signal }) {
      const { created, createdAt } = ship;
      if (created === null) throw new CaissonError("internal", `the log of ${id} has no creation event`);
      return await performStep(step, { id, owner, created, createdAt, facts: ship }, { ...parts, signal });
    },
    describeFailure: ({ step, attempt }, error) => [stepFailure(error, { step, attempt, nowMs: parts.now().getTime() })],
  };
}
