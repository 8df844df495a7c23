import type { ShipStep } from "../../../../src/contract/ship.ts";
import type { ShipEvent } from "../../../../src/contract/ship-event.ts";
import type { ShipDetails, ShipView } from "../../../../src/contract/ship-verbs.ts";

export const stepTitles: Readonly<Record<ShipStep, string>> = {
  commit: "Commit",
  push: "Push",
  request: "Pull request",
  check: "Can it be merged?",
  merge: "Merge",
  remove_branch: "Remove the branch",
  close: "Close the pull request",
};

export interface ShownStep {
  step: ShipStep;
  state: "pending" | "running" | "waiting" | "failed" | "done";
  /** What came of it, or what is wrong. */
  text: string;
  attempts: number;
}

const ends: Readonly<Partial<Record<ShipEvent["type"], ShipStep>>> = {
  "ship.committed": "commit",
  "ship.pushed": "push",
  "ship.requested": "request",
  "ship.checked": "check",
  "ship.merged": "merge",
  "ship.branch_removed": "remove_branch",
  "ship.closed": "close",
};

/** The steps of a ship in their order, each with what has become of it. */
export function shownSteps(ship: ShipDetails): ShownStep[] {
  const done = new Map<ShipStep, string>();
  const attempts = new Map<ShipStep, number>();
  for (const event of ship.history) {
    const step = ends[event.type];
    if (step !== undefined) done.set(step, outcomeOf(event));
    if (event.type === "ship.step_started") attempts.set(event.data.step, (attempts.get(event.data.step) ?? 0) + 1);
  }
  const isClosing = ship.status === "cancelled" || ship.step === "close" || done.has("close");
  const order: ShipStep[] = ["commit", "push", "request", "check", "merge", "remove_branch", ...(isClosing ? (["close"] as const) : [])];
  return order.map((step) => ({ step, attempts: attempts.get(step) ?? 0, ...stateOf(step, ship, done) }));
}

function stateOf(step: ShipStep, ship: ShipView, done: ReadonlyMap<ShipStep, string>): Pick<ShownStep, "state" | "text"> {
  // What was checked once may be checked again.
  if (ship.step === step && ship.status !== "merged" && ship.status !== "cancelled") {
    const { error, status } = ship;
    if (error === null) return { state: "running", text: "" };
    return { state: status === "waiting" ? "waiting" : "failed", text: error.message };
  }
  const text = done.get(step);
  if (text !== undefined) return { state: "done", text };
  if (step === "merge" && ship.status === "open") return { state: "waiting", text: "waits for somebody's word" };
  return { state: "pending", text: "" };
}

function outcomeOf(event: ShipEvent): string {
  switch (event.type) {
    case "ship.committed":
      return `${event.data.commit.slice(0, 12)}, ${event.data.files} ${event.data.files === 1 ? "file" : "files"}`;
    case "ship.pushed":
      return `${event.data.branch}, for ${event.data.into}${event.data.said === undefined ? "" : `; the remote says: ${event.data.said}`}`;
    case "ship.requested":
      return event.data.request.id;
    case "ship.checked":
      return "yes";
    case "ship.merged":
      return event.data.commit.slice(0, 12);
    case "ship.branch_removed":
      return event.data.isGone ? `${event.data.branch} is gone` : `${event.data.branch} is kept: there is more on it`;
    case "ship.closed":
      return "the branch is kept";
    // None of these is the end of a step.
    case "ship.created":
    case "ship.step_started":
    case "ship.step_failed":
    case "ship.merge_asked":
    case "ship.resumed":
    case "ship.options_changed":
      return "";
    default:
      // A new event does not compile until it is named above.
      event satisfies never;
      return "";
  }
}

/** An address that may be followed from a page; anything else is text. */
export const webAddress = (url: string): string | null => (/^https?:\/\/[^\s]+$/i.test(url) ? url : null);
