import type { RunFacts } from "../../contract/run-facts.ts";
import type { QueuePlace } from "../../contract/run-queue.ts";
import { showBytes } from "../../lib/quantity.ts";
import { unreachable } from "../../lib/unreachable.ts";
import type { Place, QueueBounds } from "./schedule.ts";

/** A run's place as it is shown; null for one that does not wait. `place`: null where no station says it. */
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
      return "it was paused, and waits for somebody to resume it";
    case "session":
      return `its session ${session} is in use by ${behind}`;
    case "owner":
      return `its owner has ${bounds?.runsPerOwnerMax} runs at work, which is as many as one owner may`;
    case "runs":
      return ahead === 0 ? `it is next, when one of ${bounds?.runsMax} runs ends` : `queued behind ${ahead}`;
    case "sandboxes":
      return `there are ${bounds?.sandboxesMax} sandboxes, which is as many as there may be`;
    case "memory":
      return `its sandbox asks for ${memoryBytes === null ? "memory" : showBytes(memoryBytes)}, and others have it`;
    case "turn":
      return `queued behind ${ahead}`;
    case "retry":
      return `it could not be driven, and is tried again at ${queued?.startAt}`;
    case "drain":
      return "the station is about to end; the next one drives it";
    case "station":
      return "it waits for the station to drive it";
    default:
      return unreachable(waitsFor);
  }
}
