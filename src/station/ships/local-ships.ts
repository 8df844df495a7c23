import { setTimeout as delay } from "node:timers/promises";
import type { z } from "zod";
import type { DrivenFacts } from "../../contract/driven.ts";
import type { NewDrivenEvent } from "../../contract/driven-event.ts";
import { CaissonError } from "../../contract/error.ts";
import { LOCAL_OWNER } from "../../contract/owner.ts";
import { parseRequest } from "../../contract/parse-request.ts";
import type { TestEvidence } from "../../contract/ship.ts";
import type { NewShipEvent, ShipEvent, ShipLogEvent } from "../../contract/ship-event.ts";
import type { ShipFacts } from "../../contract/ship-facts.ts";
import { ListShips, type ShipDetails, StartShip, WatchShip } from "../../contract/ship-verbs.ts";
import { newId } from "../../lib/new-id.ts";
import type { Folded } from "../driven/driven-log.ts";
import type { DrivenThings } from "../driven/driven-verbs.ts";
import { isIdPrefix } from "../names/one-of.ts";
import { takeUpOptions } from "./ship-options.ts";
import { shipTarget } from "./ship-target.ts";
import { shipView } from "./ship-view.ts";
import { checkToken, evidenceFor, findWork, type NamedWork, newShip, runsOf, type StartShipParts } from "./start-ship.ts";
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
  /** A second request for an open ship: it takes up the options that are new, and tries again what failed. */
  const takeUp = async (id: string, asked: z.output<typeof StartShip>, owner: string) => {
    const { created } = (await ships.fold(id)).state;
    if (created === null) throw new CaissonError("internal", `nothing is known of ${id}`);
    checkRemote(id, asked, created);
    const isTestSaid = asked.tests !== undefined || asked.withoutTests !== undefined;
    const tests = isTestSaid ? await evidenceAgain(asked, created.session, parts) : null;
    if (asked.token !== undefined) await checkToken({ ...created.target, token: asked.token }, owner, parts);
    return await tell(id, ({ state, facts }) => {
      if (facts.cancelRequested !== null)
        throw new CaissonError("conflict", `${id}, which ships this work, is being cancelled`, {
          hint: `Finish that first: caisson ship cancel ${id}`,
        });
      const events = takeUpOptions(id, { facts: state, asked, tests, by: owner });
      const isStuck = state.failure !== null && state.failure.nextAt === null;
      return events.length === 0 && isStuck ? [{ type: "ship.resumed" as const, data: { by: owner } }] : events;
    });
  };
  return {
    async start(request, { owner = LOCAL_OWNER } = {}) {
      const asked = parseRequest(StartShip, request, "a ship");
      if (isIdPrefix("ship", asked.of)) return await takeUp(await ships.find(asked.of), asked, owner);
      const work = await findWork(asked, parts);
      const { items } = await ships.list({ state: "open", owner, limit: OPEN_MAX });
      const before = items.find(({ own }) => isSame((own as unknown as ShipFacts).created, work));
      if (before !== undefined) return await takeUp(before.id, asked, owner);
      const created = await newShip(asked, work, { ...parts, owner });
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
    cancel: (ship, { by }) =>
      tell(ship, ({ state, facts }) => [
        ...(facts.cancelRequested === null ? [{ type: "driven.cancel_requested" as const, data: { by, text: "" } }] : []),
        ...(facts.cancelRequested !== null && state.failure !== null ? [{ type: "ship.resumed" as const, data: { by } }] : []),
      ]),
    remove: (ship) => ships.remove(ship),
  };
}

/** The same work to the same place. */
function isSame(one: ShipFacts["created"], { session, target }: Pick<NamedWork, "session" | "target">): boolean {
  return one !== null && one.session === session.id && one.target.remote === target.remote;
}

/** Throws `invalid` for options that cannot be, and `conflict` for another remote, which would be another ship. */
function checkRemote(id: string, asked: z.output<typeof StartShip>, { target }: NonNullable<ShipFacts["created"]>): void {
  const { to = target.remote, forge = target.forge, allowPrivate = target.allowPrivate } = asked;
  const { remote } = shipTarget({ ...asked, to, forge, allowPrivate }, { kind: "empty" });
  if (remote === target.remote) return;
  throw new CaissonError("conflict", `${id} goes to ${target.remote}`, { hint: "Ship the run or the session to the other one instead." });
}

async function evidenceAgain(
  asked: z.output<typeof StartShip>,
  session: string,
  parts: Pick<StartShipParts, "runs" | "sessions">,
): Promise<TestEvidence> {
  return await evidenceFor(asked, { session, runs: await runsOf(await parts.sessions.get(session), parts) }, parts);
}
