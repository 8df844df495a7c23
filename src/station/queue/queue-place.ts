import type { RunFacts } from "../../contract/run/run-facts.ts";
import type { QueuePlace } from "../../contract/run/run-queue.ts";
import { showBytes } from "../../lib/quantity.ts";
import { unreachable } from "../../lib/unreachable.ts";
import type { Place, QueueBounds } from "./schedule.ts";

/**
 * Returns the public view of a run's place, or null if it does not wait. `place` is null if no station drives the
 * queue.
 */
export function queuePlace(
  facts: Pick<RunFacts, "queued" | "priority" | "memoryBytes" | "session">,
  place: Place | null,
  bounds: QueueBounds | null,
): QueuePlace | null {
  const { queued, priority } = facts;
  if (queued === null) return null;
  const { since, startAt } = queued;
  const found: Place = place ?? { position: null, waitsFor: "station" };
  const waitsFor = found.waitsFor === "time" && queued.for === "retry" ? "retry" : found.waitsFor;
  return { position: found.position, waitsFor, why: whyText({ ...found, waitsFor }, facts, bounds), priority, startAt, since };
}

function whyText(
  { waitsFor, behind, position }: Place,
  { queued, session, memoryBytes }: Parameters<typeof queuePlace>[0],
  bounds: QueueBounds | null,
): string {
  const ahead = (position ?? 1) - 1;
  switch (waitsFor) {
    case "nothing":
      return "it is about to start";
    case "time":
      return `it starts at ${queued?.startAt}`;
    case "resume":
      return "it is paused until a user resumes it";
    case "session":
      return `its session ${session} is in use by ${behind}`;
    case "owner":
      return `its owner has ${bounds?.runsPerOwnerMax} runs at work, the limit for one owner`;
    case "runs":
      return ahead === 0 ? `it starts when one of ${bounds?.runsMax} runs ends` : `queued behind ${ahead}`;
    case "sandboxes":
      return `the limit of ${bounds?.sandboxesMax} sandboxes is reached`;
    case "memory":
      return `its sandbox needs ${memoryBytes === null ? "memory" : showBytes(memoryBytes)}, which other sandboxes hold`;
    case "turn":
      return `queued behind ${ahead}`;
    case "retry":
      return `it could not be driven; the next attempt is at ${queued?.startAt}`;
    case "drain":
      return "the station is shutting down; the next one drives it";
    case "station":
      return "it waits for the station to drive it";
    default:
      return unreachable(waitsFor);
  }
}
