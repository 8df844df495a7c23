import { z } from "zod";
import { auditName, auditOrigin } from "../audit-text.ts";
import { ShipLogEvent } from "../ship-event.ts";
import { ListShips, ShipDetails, ShipList, ShipView, StartShip, WatchShip } from "../ship-verbs.ts";
import { NameOrId } from "./name-or-id.ts";
import { reachOfShip } from "./reach.ts";
import type { Route } from "./route.ts";

const EVENTS_PER_PAGE = 100;
const EVENTS_PER_PAGE_MAX = 1000;
/** How long a request waits at most: shorter than what proxies between allow. */
const WAIT_MS_MAX = 25_000;

const params = { ship: NameOrId };
const reason = z.strictObject({ text: z.string().max(2000).default("") });
const NumberedShipEvent = ShipLogEvent.and(z.object({ seq: z.int().positive() }));

export const shipRoutes = {
  "ships.start": {
    summary:
      "Ship the changes of a run that ended, or of a spec that is done: branch, commit, push, pull request; with `merge` all the rest. An open ship of the same work to the same remote takes up the options instead.",
    scope: "run",
    body: StartShip,
    reaches: reachOfShip,
    audited: ({ of, to }: z.output<typeof StartShip>) => ({
      of: auditName(of),
      to: to === undefined ? undefined : auditOrigin(to),
    }),
    answer: { status: 201, json: ShipView },
  },
  "ships.list": { summary: "List ships, the last changed first.", scope: "read", query: ListShips, answer: { json: ShipList } },
  "ships.get": { summary: "One ship, with what happened.", scope: "read", params, answer: { json: ShipDetails } },
  "ships.events": {
    summary: "The events of a ship: a page as JSON, or all as server-sent events until it ends, whose ids are sequence numbers.",
    scope: "read",
    params,
    query: z.strictObject({
      fromSeq: z.int().min(1).optional(),
      limit: z.int().min(1).max(EVENTS_PER_PAGE_MAX).default(EVENTS_PER_PAGE),
    }),
    answer: { json: z.object({ events: z.array(NumberedShipEvent), next: z.int().positive().nullable() }), events: NumberedShipEvent },
  },
  "ships.wait": {
    summary: "A ship once it is over, or waits for a person with `orPerson`, or as it is when that takes longer than `timeoutMs`.",
    scope: "read",
    params,
    query: z.strictObject({ orPerson: z.boolean().optional(), timeoutMs: z.int().min(0).max(WAIT_MS_MAX).default(WAIT_MS_MAX) }),
    answer: { json: ShipDetails },
  },
  "ships.watch": {
    summary: "One ship, once something happened after an event, or when the time is up.",
    scope: "read",
    params,
    query: WatchShip,
    answer: { json: ShipDetails },
  },
  "ships.merge": { summary: "Have a ship merged, once it can be.", scope: "run", params, answer: { status: 202, json: ShipView } },
  "ships.resume": {
    summary: "Try again what failed, or go on with a ship that nobody drives.",
    scope: "run",
    params,
    answer: { status: 202, json: ShipView },
  },
  "ships.pause": {
    summary: "Begin nothing new with a ship until it is resumed.",
    scope: "run",
    params,
    body: reason,
    bodyOptional: true,
    answer: { status: 202, json: ShipView },
  },
  "ships.cancel": {
    summary: "Close a ship's pull request, and keep its branch.",
    scope: "run",
    params,
    answer: { status: 202, json: ShipView },
  },
  "ships.remove": { summary: "Forget a ship that is over; what it brought to the remote stays.", scope: "run", params, answer: {} },
} as const satisfies Record<string, Route>;
