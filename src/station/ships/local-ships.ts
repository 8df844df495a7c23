import { setTimeout as delay } from "node:timers/promises";
import type { DrivenFacts } from "../../contract/driven.ts";
import type { NewDrivenEvent } from "../../contract/driven-event.ts";
import { CaissonError } from "../../contract/error.ts";
import { LOCAL_OWNER } from "../../contract/owner.ts";
import { parseRequest } from "../../contract/parse-request.ts";
import type { NewShipEvent, ShipEvent, ShipLogEvent } from "../../contract/ship-event.ts";
import type { ShipFacts } from "../../contract/ship-facts.ts";
import { ListShips, type ShipDetails, StartShip, WatchShip } from "../../contract/ship-verbs.ts";
import { newId } from "../../lib/new-id.ts";
import type { Folded } from "../driven/driven-log.ts";
import type { DrivenThings } from "../driven/driven-verbs.ts";
import { shipView } from "./ship-view.ts";
import { newShip, type StartShipParts } from "./start-ship.ts";
import type { ShipVerbs } from "./verbs.ts";

const OPEN_MAX = 10_000;

export type Ships = DrivenThings<ShipFacts, NewShipEvent>;

/** The ships of this machine. */
export function createLocalShips(ships: Ships, parts: StartShipParts): ShipVerbs {
  const details = async (ship: string): Promise<ShipDetails> => {
    const view = shipView(await ships.get(ship));
    const history: ShipEvent[] = [];
    for await (const event of ships.events(view.id)) if (event.type.startsWith("ship.")) history.push(event as unknown as ShipEvent);
    return { ...view, history };
  };
  /** Says something to it that makes it go on, and goes on with it here unless another process does. */
  const tell = async (ship: string, make: (thing: Folded<ShipFacts>) => readonly (NewShipEvent | NewDrivenEvent)[]) => {
    const view = await ships.say(ship, (thing) => {
      const { facts } = thing;
      if (facts.finish === null) return make(thing);
      throw new CaissonError("conflict", `the ship ${facts.id} is over`, { hint: "`caisson ship show` tells how it ended." });
    });
    ships.drive(view.id);
    return shipView(view);
  };
  return {
    async start(request, { owner = LOCAL_OWNER } = {}) {
      const asked = parseRequest(StartShip, request, "a ship");
      const created = await newShip(asked, owner, parts);
      const { items } = await ships.list({ state: "open", owner, limit: OPEN_MAX });
      const before = items.find(({ own }) => isSame((own as unknown as ShipFacts).created, created.data));
      if (before !== undefined) {
        ships.drive(before.id);
        return shipView(before);
      }
      const id = await ships.start({ id: newId("ship"), title: created.data.title, owner, events: [created] });
      return shipView(await ships.get(id));
    },
    get: details,
    async list(options = {}) {
      const isWhole = ({ own }: DrivenFacts) => (own as unknown as ShipFacts).created !== null;
      const page = await ships.list(parseRequest(ListShips, options, "a list of ships"));
      return { ...page, items: page.items.filter(isWhole).map(shipView) };
    },
    events: (ship, options) => ships.events(ship, options) as AsyncIterable<ShipLogEvent & { seq: number }>,
    wait: async (ship, options) => await details((await ships.wait(ship, options)).id),
    async watch(ship, request, { signal } = {}) {
      const { afterSeq, seconds } = parseRequest(WatchShip, request, "to watch a ship");
      const id = await ships.find(ship);
      const end = new AbortController();
      const until = signal === undefined ? end.signal : AbortSignal.any([signal, end.signal]);
      const timer = delay(seconds * 1000, undefined, { signal: until }).then(
        () => end.abort(),
        () => undefined,
      );
      try {
        // What is told is that something happened; what has come of it is looked at afterwards.
        for await (const _ of ships.events(id, { fromSeq: afterSeq + 1, follow: true, signal: until })) break;
      } catch (error) {
        if (!until.aborted) throw error;
      }
      end.abort();
      await timer;
      if (signal?.aborted === true) throw new CaissonError("cancelled", `watching ${id} was given up`);
      return await details(id);
    },
    merge: (ship, { by }) => tell(ship, ({ state }) => (state.isMergeAsked ? [] : [{ type: "ship.merge_asked", data: { by } }])),
    resume: (ship, { by }) =>
      tell(ship, ({ state, facts }) => [
        ...(facts.paused === null ? [] : [{ type: "driven.continued" as const, data: { by } }]),
        ...(state.failure === null ? [] : [{ type: "ship.resumed" as const, data: { by } }]),
      ]),
    pause: async (ship, options) => shipView(await ships.pause(ship, options)),
    cancel: async (ship, { by }) => shipView(await ships.cancel(ship, { by })),
    remove: (ship) => ships.remove(ship),
  };
}

/** The same work to the same place. */
function isSame(one: ShipFacts["created"], other: NonNullable<ShipFacts["created"]>): boolean {
  return one !== null && one.session === other.session && one.target.remote === other.target.remote;
}
