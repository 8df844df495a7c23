import type { z } from "zod";
import type { EventFor } from "../event/event-family.ts";
import { type Handlers, handle } from "../event/handlers.ts";
import type { PullRequest, ShipError, ShipStep } from "./ship.ts";
import type { ShipCommitted, ShipCreated, ShipOptionsChanged, ShipPushed, shipEvents } from "./ship-event.ts";

/** The state of a ship, folded from its events. Plain data, stored in the head of its stream. */
export interface ShipFacts {
  created: z.infer<typeof ShipCreated>["data"] | null;
  createdAt: string;
  committed: z.infer<typeof ShipCommitted>["data"] | null;
  pushed: z.infer<typeof ShipPushed>["data"] | null;
  request: PullRequest | null;
  isChecked: boolean;
  merged: string | null;
  isBranchDone: boolean;
  isClosed: boolean;
  isMergeAsked: boolean;
  /** The options changed while a step was in progress, so its outcome is ignored and the step is repeated. */
  isStale: boolean;
  /** The step in progress, and its attempts since a person last acted. */
  step: ShipStep | null;
  attempts: number;
  /** The total number of steps begun. */
  begun: number;
  /** Null while the step is in progress. */
  failure: { error: ShipError; nextAt: string | null } | null;
}
export const SHIP_FACTS_VERSION = 2;

export const emptyShipFacts = (): ShipFacts => ({
  created: null,
  createdAt: "",
  committed: null,
  pushed: null,
  request: null,
  isChecked: false,
  merged: null,
  isBranchDone: false,
  isClosed: false,
  isMergeAsked: false,
  isStale: false,
  step: null,
  attempts: 0,
  begun: 0,
  failure: null,
});

/** Applies one event to the facts, in place. */
export function applyToShipFacts(facts: ShipFacts, event: { type: string; at: string; data: unknown }): void {
  Object.assign(facts, handle(changes, event, facts));
}

/** The facts after a completed step, without its attempts. */
const done = { step: null, attempts: 0, failure: null, isStale: false } as const;

const changes: Handlers<EventFor<typeof shipEvents, "facts">, ShipFacts, Partial<ShipFacts>> = {
  "ship.created": ({ at, data }) => ({ created: data, createdAt: at, isMergeAsked: data.merge }),
  "ship.step_started": ({ data: { step, attempt } }, { begun: stepCount }) => ({
    ...{ step, attempts: attempt, begun: stepCount + 1, failure: null, isStale: false },
  }),
  "ship.step_failed": ({ data: { error, nextAt } }, { isStale }) => (isStale ? done : { failure: { error, nextAt } }),
  "ship.committed": ({ data }, { isStale }) => (isStale ? done : { ...done, committed: data }),
  "ship.pushed": ({ data }, { isStale }) => (isStale ? done : { ...done, pushed: data }),
  "ship.requested": ({ data }) => ({ ...done, request: data.request }),
  "ship.checked": () => ({ ...done, isChecked: true }),
  "ship.merged": ({ data }) => ({ ...done, merged: data.commit }),
  "ship.branch_removed": () => ({ ...done, isBranchDone: true }),
  "ship.closed": () => ({ ...done, isClosed: true }),
  "ship.merge_asked": (_, facts) => ({ isMergeAsked: true, ...resetFailure(facts) }),
  "ship.resumed": (_, facts) => resetFailure(facts),
  "ship.options_changed": withOptions,
};

/** Applies changed options. Completed steps that depend on them are repeated, and so is a step in progress. */
function withOptions({ data: { by: _, ...options } }: z.infer<typeof ShipOptionsChanged>, facts: ShipFacts): Partial<ShipFacts> {
  if (facts.created === null) return {};
  const created = { ...facts.created, ...options } as NonNullable<ShipFacts["created"]>;
  if (facts.step !== null && facts.failure === null) return { created, isStale: facts.step === "commit" || facts.step === "push" };
  const isRecommitted = facts.pushed === null && commitOptions.some((option) => options[option] !== undefined);
  const isRetargeted = facts.request === null && created.target.into !== facts.created.target.into;
  return { created, ...(isRecommitted && { committed: null }), ...(isRetargeted && { pushed: null }), ...resetFailure(facts) };
}

/** The options that a commit depends on. */
const commitOptions = ["title", "body", "includeConfiguration", "leaveOut"] as const;

/** Resets the failed step, since a person acted on it. Checks are repeated as well. */
function resetFailure({ failure }: ShipFacts): Partial<ShipFacts> {
  return failure === null ? {} : { ...done, isChecked: false };
}
