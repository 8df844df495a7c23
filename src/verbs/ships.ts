import { z } from "zod";
import { reachOfShip } from "../contract/api/required-scopes.ts";
import { auditName, auditOrigin } from "../contract/audit/audit-text.ts";
import { ShipLogEvent } from "../contract/ship/ship-event.ts";
import { ListShips, ShipDetails, ShipList, ShipView, StartShip, WatchShip } from "../contract/ship/ship-verbs.ts";
import { jobVerbs } from "./durable-jobs.ts";
import { type VerbsOf, verb } from "./verb.ts";

const NumberedShipEvent = ShipLogEvent.and(z.object({ seq: z.int().positive() }));

/**
 * Ships take the changes of a run or a session to a remote. A ship is named by its id or an id prefix. The verbs throw
 * `not_found` for one that does not exist, `invalid` for an ambiguous prefix.
 */
export const ships = {
  ...jobVerbs({ group: "ships", thing: "ship", view: ShipDetails, event: NumberedShipEvent }),
  /**
   * Creates a ship and starts to drive it: branch, commit, push, pull request; with `merge` all the rest. An open ship
   * of the same session to the same remote, or the one that `of` names, takes over the given options instead and
   * retries what failed. Changes nothing if it throws: `invalid`, `unsupported`, `not_found`, `conflict` for a run that
   * has not ended, a run without passed tests, or an option that an open ship can no longer take over.
   */
  start: verb({
    path: "POST /v1/ships",
    takes: StartShip,
    owner: true,
    apart: true,
    gives: ShipView,
    status: 201,
    reaches: reachOfShip,
    audited: ({ of, to }: z.output<typeof StartShip>) => ({
      of: auditName(of),
      to: to === undefined ? undefined : auditOrigin(to),
    }),
    scope: "run",
    owned: "by hand",
    summary:
      "Ship the changes of a run that has ended, or of a finished spec: branch, commit, push, pull request; with `merge` all the rest. An open ship of the same work to the same remote takes over the options instead.",
  }),
  /** Lists ships, last changed first. Throws `invalid` for a malformed cursor. */
  list: verb({
    path: "GET /v1/ships",
    takes: ListShips,
    gives: ShipList,
    scope: "read",
    owned: "by hand",
    summary: "List ships, last changed first.",
  }),
  /**
   * Like `get`, but waits until something happens after an event, or the timeout expires. Throws `cancelled` if the
   * signal aborts.
   */
  watch: verb({
    path: "GET /v1/ships/{ship}/watch",
    takes: WatchShip,
    signal: true,
    apart: true,
    gives: ShipDetails,
    scope: "read",
    owned: "ship",
    summary: "Get a ship as soon as something happens after an event, or the timeout expires.",
  }),
  /** Merges the ship as soon as possible. Throws `conflict` if it has ended. */
  merge: verb({
    path: "POST /v1/ships/{ship}/merge",
    by: true,
    gives: ShipView,
    status: 202,
    scope: "run",
    owned: "ship",
    summary: "Merge a ship as soon as possible.",
  }),
  /** Starts nothing new; work in progress finishes. Throws `conflict` if the ship has ended. */
  pause: verb({
    path: "POST /v1/ships/{ship}/pause",
    takes: z.strictObject({ text: z.string().max(2000).optional() }),
    bodyOptional: true,
    by: true,
    gives: ShipView,
    status: 202,
    scope: "run",
    owned: "ship",
    summary: "Pause a ship: start nothing new until it is resumed.",
  }),
  /** Retries what failed, or continues a paused ship. Throws `conflict` if it has ended. */
  resume: verb({
    path: "POST /v1/ships/{ship}/resume",
    by: true,
    gives: ShipView,
    status: 202,
    scope: "run",
    owned: "ship",
    summary: "Retry what failed, or continue a ship that has no driver.",
  }),
  /** Closes its pull request and keeps its branch. Throws `conflict` if the ship has ended. */
  cancel: verb({
    path: "POST /v1/ships/{ship}/cancel",
    by: true,
    gives: ShipView,
    status: 202,
    scope: "run",
    owned: "ship",
    summary: "Close a ship's pull request and keep its branch.",
  }),
};

export type ShipVerbs = VerbsOf<typeof ships>;
