import type { z } from "zod";
import type { PullRequest, ShipError, ShipStep } from "./ship.ts";
import type { ShipCommitted, ShipCreated, ShipEvent, ShipPushed } from "./ship-event.ts";

/** What a ship has come to: the fold of its events. Plain data, which the log keeps with the head of its stream. */
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
  /** Options changed while a step was at work: its outcome does not count, and the step is done again. */
  isStale: boolean;
  /** The step that was begun last and is not done, and how often, since it was last somebody's turn. */
  step: ShipStep | null;
  attempts: number;
  /** How often a step was begun, in all. */
  begun: number;
  /** Null while the step is at work. */
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

const ownTypes: ReadonlySet<string> = new Set<ShipEvent["type"]>([
  "ship.created",
  "ship.step_started",
  "ship.step_failed",
  "ship.committed",
  "ship.pushed",
  "ship.requested",
  "ship.checked",
  "ship.merged",
  "ship.branch_removed",
  "ship.merge_asked",
  "ship.resumed",
  "ship.options_changed",
  "ship.closed",
]);

/** Folds an event of a ship's stream, in place; those that all driven things share change nothing here. */
export function applyToShipFacts(facts: ShipFacts, event: { type: string; at: string; data: unknown }): void {
  if (ownTypes.has(event.type)) Object.assign(facts, changeBy(facts, event as ShipEvent));
}

/** A step that is done leaves no trace of its attempts. */
const done = { step: null, attempts: 0, failure: null, isStale: false } as const;

function changeBy(facts: ShipFacts, event: ShipEvent): Partial<ShipFacts> {
  switch (event.type) {
    case "ship.created":
      return { created: event.data, createdAt: event.at, isMergeAsked: event.data.merge };
    case "ship.step_started":
      return { step: event.data.step, attempts: event.data.attempt, begun: facts.begun + 1, failure: null, isStale: false };
    case "ship.step_failed":
      return facts.isStale ? done : { failure: { error: event.data.error, nextAt: event.data.nextAt } };
    case "ship.committed":
      return facts.isStale ? done : { ...done, committed: event.data };
    case "ship.pushed":
      return facts.isStale ? done : { ...done, pushed: event.data };
    case "ship.requested":
      return { ...done, request: event.data.request };
    case "ship.checked":
      return { ...done, isChecked: true };
    case "ship.merged":
      return { ...done, merged: event.data.commit };
    case "ship.branch_removed":
      return { ...done, isBranchDone: true };
    case "ship.closed":
      return { ...done, isClosed: true };
    case "ship.merge_asked":
      return { isMergeAsked: true, ...retried(facts) };
    case "ship.resumed":
      return retried(facts);
    case "ship.options_changed":
      return withOptions(facts, event.data);
    default:
      return event satisfies never;
  }
}

type OptionChanges = Extract<ShipEvent, { type: "ship.options_changed" }>["data"];

/** A step that is done counts only if it was done with these options; one at work is done again afterwards. */
function withOptions(facts: ShipFacts, { by: _, ...changes }: OptionChanges): Partial<ShipFacts> {
  if (facts.created === null) return {};
  const created = { ...facts.created, ...changes } as NonNullable<ShipFacts["created"]>;
  if (facts.step !== null && facts.failure === null) return { created, isStale: facts.step === "commit" || facts.step === "push" };
  const isRecommitted = facts.pushed === null && commitOptions.some((option) => changes[option] !== undefined);
  const isRetargeted = facts.request === null && created.target.into !== facts.created.target.into;
  return { created, ...(isRecommitted && { committed: null }), ...(isRetargeted && { pushed: null }), ...retried(facts) };
}

/** What a commit is made with. */
const commitOptions = ["title", "body", "includeConfiguration", "leaveOut"] as const;

/** As if it had not been tried: somebody did something about it. What was checked then is checked again. */
function retried({ failure }: ShipFacts): Partial<ShipFacts> {
  return failure === null ? {} : { ...done, isChecked: false };
}
