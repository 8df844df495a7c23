import type { EventFor } from "../../../../src/contract/event/event-family.ts";
import { type Handlers, handle } from "../../../../src/contract/event/handlers.ts";
import type { ShipStep } from "../../../../src/contract/ship/ship.ts";
import type { shipEvents } from "../../../../src/contract/ship/ship-event.ts";
import type { ShipDetails, ShipView } from "../../../../src/contract/ship/ship-verbs.ts";

export const stepTitles: Readonly<Record<ShipStep, string>> = {
  commit: "Commit",
  push: "Push",
  request: "Pull request",
  check: "Check whether it can be merged",
  merge: "Merge",
  remove_branch: "Remove the branch",
  close: "Close the pull request",
};

export interface ShownStep {
  step: ShipStep;
  state: "pending" | "running" | "waiting" | "failed" | "done";
  /** The outcome or the error. */
  text: string;
  attempts: number;
}

/** Events that end a step, with the step and its outcome. */
const ends: Handlers<EventFor<typeof shipEvents, "console">, void, { step: ShipStep; text: string }> = {
  "ship.committed": ({ data: { commit, files } }) => ({
    step: "commit",
    text: `${commit.slice(0, 12)}, ${files} ${files === 1 ? "file" : "files"}`,
  }),
  "ship.pushed": ({ data: { branch, into, said: reply } }) => ({
    step: "push",
    text: `${branch}, for ${into}${reply === undefined ? "" : `; the remote said: ${reply}`}`,
  }),
  "ship.requested": ({ data }) => ({ step: "request", text: data.request.id }),
  "ship.checked": () => ({ step: "check", text: "yes" }),
  "ship.merged": ({ data }) => ({ step: "merge", text: data.commit.slice(0, 12) }),
  "ship.branch_removed": ({ data: { branch, isGone } }) => ({
    step: "remove_branch",
    text: `${branch} was ${isGone ? "removed" : "kept: it has other commits"}`,
  }),
  "ship.closed": () => ({ step: "close", text: "the branch stays" }),
};

/** Returns the steps of a ship in order, each with its state. */
export function shownSteps(ship: ShipDetails): ShownStep[] {
  const done = new Map<ShipStep, string>();
  const attempts = new Map<ShipStep, number>();
  for (const event of ship.history) {
    const end = handle(ends, event, undefined);
    if (end !== undefined) done.set(end.step, end.text);
    if (event.type === "ship.step_started") attempts.set(event.data.step, (attempts.get(event.data.step) ?? 0) + 1);
  }
  const isClosing = ship.status === "cancelled" || ship.step === "close" || done.has("close");
  const order: ShipStep[] = ["commit", "push", "request", "check", "merge", "remove_branch", ...(isClosing ? (["close"] as const) : [])];
  return order.map((step) => ({ step, attempts: attempts.get(step) ?? 0, ...stateOf(step, ship, done) }));
}

function stateOf(step: ShipStep, ship: ShipView, done: ReadonlyMap<ShipStep, string>): Pick<ShownStep, "state" | "text"> {
  // A step that is done may run again, such as the check.
  if (ship.step === step && ship.status !== "merged" && ship.status !== "cancelled") {
    const { error, status } = ship;
    if (error === null) return { state: "running", text: "" };
    return { state: status === "waiting" ? "waiting" : "failed", text: error.message };
  }
  const text = done.get(step);
  if (text !== undefined) return { state: "done", text };
  if (step === "merge" && ship.status === "open") return { state: "waiting", text: "until someone merges it" };
  return { state: "pending", text: "" };
}

/** Returns an address that a page may link to; null for other text. */
export const webAddress = (url: string): string | null => (/^https?:\/\/[^\s]+$/i.test(url) ? url : null);
