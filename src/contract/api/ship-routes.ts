import type { z } from "zod";
import { ListShips, ShipDetails, ShipList, ShipView, StartShip, WatchShip } from "../ship-verbs.ts";
import { NameOrId } from "./name-or-id.ts";
import type { Route } from "./route.ts";

const params = { ship: NameOrId };

export const shipRoutes = {
  "ships.start": {
    summary:
      "Ship the changes of a run that ended, or of a spec that is done: branch, commit, push, pull request; with `merge` all the rest.",
    scope: "run",
    body: StartShip,
    reaches: ({ to = "", allowPrivate }: z.output<typeof StartShip>) => [
      ...(allowPrivate ? ["private addresses"] : []),
      ...(/^(?:\/|file:)/i.test(to) ? ["a repository of its machine"] : []),
    ],
    audited: ({ of, to }: z.output<typeof StartShip>) => ({ of, to }),
    answer: { status: 201, json: ShipView },
  },
  "ships.list": { summary: "List ships, the last changed first.", scope: "read", query: ListShips, answer: { json: ShipList } },
  "ships.get": { summary: "One ship, with what happened.", scope: "read", params, answer: { json: ShipDetails } },
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
  "ships.cancel": {
    summary: "Close a ship's pull request, and keep its branch.",
    scope: "run",
    params,
    answer: { status: 202, json: ShipView },
  },
} as const satisfies Record<string, Route>;
