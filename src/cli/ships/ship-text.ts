import type { EventFor } from "../../contract/event/event-family.ts";
import { type Handlers, handle } from "../../contract/event/handlers.ts";
import type { ShipStep } from "../../contract/ship/ship.ts";
import type { ShipEvent, shipEvents } from "../../contract/ship/ship-event.ts";
import type { ShipView } from "../../contract/ship/ship-verbs.ts";
import { type Line, line } from "../terminal/line.ts";

const steps: Readonly<Record<ShipStep, string>> = {
  commit: "creating the commit",
  push: "pushing",
  request: "opening the pull request",
  check: "checking whether it can be merged",
  merge: "merging",
  remove_branch: "removing the branch",
  close: "closing the pull request",
};

/** Describes an event in one line. */
export const eventText = (event: ShipEvent): string => handle(texts, event, undefined) ?? "";

const texts: Handlers<EventFor<typeof shipEvents, "terminal">, void, string> = {
  "ship.created": ({ data: { tests } }) => (tests.kind === "ran" ? "tests passed" : `without tests: ${tests.reason}`),
  "ship.step_started": ({ data: { step, attempt } }) => `${steps[step]}${attempt === 1 ? "" : `, attempt ${attempt}`}`,
  "ship.step_failed": ({ data: { error, nextAt } }) => `${error.message}${nextAt === null ? "" : `; next attempt at ${nextAt}`}`,
  "ship.committed": ({ data: { commit, files } }) => `commit ${commit.slice(0, 12)} of ${files} ${files === 1 ? "file" : "files"}`,
  "ship.pushed": ({ data: { branch, said: message } }) =>
    `pushed the branch ${branch}${message === undefined ? "" : `; the remote says: ${message}`}`,
  "ship.requested": ({ data }) => `pull request ${data.request.url}`,
  "ship.checked": () => "ready to merge",
  "ship.merged": ({ data }) => `merged: ${data.commit.slice(0, 12)}`,
  "ship.branch_removed": ({ data: { branch, isGone } }) =>
    `${isGone ? "removed the branch" : "kept the branch because it has new commits:"} ${branch}`,
  "ship.merge_asked": ({ data }) => `${data.by} requested the merge`,
  "ship.resumed": ({ data }) => `${data.by} requested another attempt`,
  "ship.options_changed": ({ data: { by, ...changes } }) => `${by} changed ${Object.keys(changes).join(", ")}`,
  "ship.closed": () => "closed; the branch stays",
};

/** Describes a ship's outcome. */
export function outcomeText(ship: ShipView): Line {
  const { id, status, branch, into, request, merged } = ship;
  if (status === "merged") return line`${branch ?? ""} was merged into ${into ?? ""} (${merged?.slice(0, 12) ?? ""})`;
  if (status === "cancelled") return line`${id} was cancelled`;
  return line`${request?.url ?? id}`;
}
