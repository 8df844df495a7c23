import type { ShipStep } from "../../contract/ship.ts";
import type { ShipEvent } from "../../contract/ship-event.ts";
import type { ShipView } from "../../contract/ship-verbs.ts";
import { unreachable } from "../../lib/unreachable.ts";
import { type Line, line } from "../terminal/line.ts";

const steps: Readonly<Record<ShipStep, string>> = {
  commit: "making the commit",
  push: "pushing",
  request: "opening the pull request",
  check: "asking whether it can be merged",
  merge: "merging",
  remove_branch: "removing the branch",
  close: "closing the pull request",
};

/** What happened, in a line. */
export function eventText(event: ShipEvent): string {
  switch (event.type) {
    case "ship.created":
      return event.data.tests.kind === "ran" ? "tests ran well" : `without tests: ${event.data.tests.reason}`;
    case "ship.step_started":
      return `${steps[event.data.step]}${event.data.attempt === 1 ? "" : `, attempt ${event.data.attempt}`}`;
    case "ship.step_failed": {
      const { error, nextAt } = event.data;
      return `${error.message}${nextAt === null ? "" : `; it is tried again at ${nextAt}`}`;
    }
    case "ship.committed":
      return `commit ${event.data.commit.slice(0, 12)} of ${event.data.files} ${event.data.files === 1 ? "file" : "files"}`;
    case "ship.pushed":
      return `the branch ${event.data.branch} is there${event.data.said === undefined ? "" : `; the remote says: ${event.data.said}`}`;
    case "ship.requested":
      return `pull request ${event.data.request.url}`;
    case "ship.checked":
      return "it can be merged";
    case "ship.merged":
      return `merged: ${event.data.commit.slice(0, 12)}`;
    case "ship.branch_removed":
      return event.data.isGone
        ? `the branch ${event.data.branch} is removed`
        : `the branch ${event.data.branch} is kept: there is more on it`;
    case "ship.merge_asked":
      return `${event.data.by} wants it merged`;
    case "ship.resumed":
      return `${event.data.by} wants it tried again`;
    case "ship.options_changed": {
      const { by, ...changes } = event.data;
      return `${by} changed ${Object.keys(changes).join(", ")}`;
    }
    case "ship.closed":
      return "closed; the branch is kept";
    default:
      return unreachable(event);
  }
}

/** What has come of it. */
export function outcomeText(ship: ShipView): Line {
  const { id, status, branch, into, request, merged } = ship;
  if (status === "merged") return line`${branch ?? ""} is merged into ${into ?? ""} (${merged?.slice(0, 12) ?? ""})`;
  if (status === "cancelled") return line`${id} is cancelled`;
  return line`${request?.url ?? id}`;
}
