import type { JobView } from "../../contract/durable/durable-job.ts";
import { CaissonError } from "../../contract/error/error.ts";
import { isPoisonPause } from "../../contract/run/poison.ts";
import type { ShipFacts } from "../../contract/ship/ship-facts.ts";
import type { ShipStatus, ShipView } from "../../contract/ship/ship-verbs.ts";

/** Builds the public view of a ship from the job record. */
export function shipView(view: JobView): ShipView {
  const ship = view.own as unknown as ShipFacts;
  const { created, committed, pushed } = ship;
  const failure = failureOf(view, ship);
  if (created === null)
    throw new CaissonError("internal", `the log of ${view.id} is damaged`, { hint: "Run `caisson logs --check` for details." });
  const { session, run, spec = null, target, title, tests } = created;
  return {
    id: view.id,
    owner: view.owner,
    session,
    run,
    spec,
    status: statusOf(view, ship, failure),
    step: ship.step,
    target,
    title,
    branch: pushed?.branch ?? null,
    into: pushed?.into ?? target.into,
    commit: committed?.commit ?? null,
    files: committed?.files ?? null,
    request: ship.request,
    merged: ship.merged,
    tests,
    asks: isPoisonPause(view.paused) ? view.paused.text : (view.waits?.person ?? null),
    error: failure?.error ?? null,
    attempts: ship.attempts,
    nextAt: failure?.nextAt ?? null,
    createdAt: view.createdAt,
    updatedAt: view.updatedAt,
    seq: view.seq,
  };
}

/** Returns the failure, but ignores one from before a cancellation: it does not prevent us from closing the ship. */
function failureOf({ cancelRequested }: JobView, { failure, step }: ShipFacts): ShipFacts["failure"] {
  return cancelRequested !== null && step !== "close" && step !== "remove_branch" ? null : failure;
}

function statusOf(
  { finish, paused, cancelRequested }: JobView,
  { request, isMergeAsked, merged }: ShipFacts,
  failure: ShipFacts["failure"],
): ShipStatus {
  if (finish !== null) return finish === "completed" ? "merged" : "cancelled";
  if (paused !== null) return "paused";
  if (failure !== null) return failure.nextAt === null ? "blocked" : "waiting";
  return request !== null && !isMergeAsked && merged === null && cancelRequested === null ? "open" : "working";
}
