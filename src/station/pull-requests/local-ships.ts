import { setTimeout as delay } from "node:timers/promises";
import type { z } from "zod";
import type { NewJobEvent } from "../../contract/durable/durable-event.ts";
import type { JobFacts } from "../../contract/durable/durable-job.ts";
import { CaissonError } from "../../contract/error/error.ts";
import { parseRequest } from "../../contract/error/parse-request.ts";
import type { TestEvidence } from "../../contract/ship/ship.ts";
import type { NewShipEvent, ShipEvent, ShipLogEvent } from "../../contract/ship/ship-event.ts";
import type { ShipFacts } from "../../contract/ship/ship-facts.ts";
import { ListShips, type ShipDetails, StartShip, WatchShip } from "../../contract/ship/ship-verbs.ts";
import { LOCAL_OWNER } from "../../contract/token/owner.ts";
import { ignore } from "../../lib/failures.ts";
import { newId } from "../../lib/new-id.ts";
import type { ShipVerbs } from "../../verbs/ships.ts";
import type { Folded } from "../durable/durable-log.ts";
import type { Jobs } from "../durable/durable-verbs.ts";
import { isIdPrefix } from "../names/one-of.ts";
import { takeUpOptions } from "./ship-options.ts";
import { shipTarget } from "./ship-target.ts";
import { shipView } from "./ship-view.ts";
import { checkToken, evidenceFor, findWork, type NamedWork, newShip, runsOf, type StartShipParts } from "./start-ship.ts";

const OPEN_MAX = 10_000;

export type Ships = Jobs<ShipFacts, NewShipEvent>;

/** Creates the ship verbs of this machine. */
export function createLocalShips(ships: Ships, parts: StartShipParts): ShipVerbs {
  const details = async (ship: string): Promise<ShipDetails> => {
    const view = shipView(await ships.get(ship));
    const history: ShipEvent[] = [];
    for await (const event of ships.events(view.id)) if (event.type.startsWith("ship.")) history.push(event as unknown as ShipEvent);
    return { ...view, history };
  };
  /** Appends an event that lets the ship continue, and drives it here unless another process does. */
  const tell = async (ship: string, make: (thing: Folded<ShipFacts>) => readonly (NewShipEvent | NewJobEvent)[]) => {
    const view = await ships.say(ship, (thing) => {
      const { facts } = thing;
      if (facts.finish === null) return make(thing);
      throw new CaissonError("conflict", `the ship ${facts.id} has ended`, { hint: "Run `caisson ship show` to see how it ended." });
    });
    ships.drive(view.id);
    return shipView(view);
  };
  /** Handles another request for an open ship: adopts changed options and retries a failed step. */
  const takeUp = async (id: string, request: z.output<typeof StartShip>, owner: string) => {
    const { created } = (await ships.fold(id)).state;
    if (created === null) throw new CaissonError("internal", `the log of ${id} has no creation event`);
    checkRemote(id, request, created);
    const isTestSaid = request.tests !== undefined || request.withoutTests !== undefined;
    const tests = isTestSaid ? await evidenceAgain(request, created.session, parts) : null;
    if (request.token !== undefined) await checkToken({ ...created.target, token: request.token }, owner, parts);
    return await tell(id, ({ state, facts }) => {
      if (facts.cancelRequested !== null)
        throw new CaissonError("conflict", `${id} ships this work already, and is being cancelled`, {
          hint: `Finish cancelling it first: caisson ship cancel ${id}`,
        });
      const events = takeUpOptions(id, { facts: state, asked: request, tests, by: owner });
      const isStuck = state.failure !== null && state.failure.nextAt === null;
      return events.length === 0 && isStuck ? [{ type: "ship.resumed" as const, data: { by: owner } }] : events;
    });
  };
  return {
    async start(request, { owner = LOCAL_OWNER } = {}) {
      const parsedRequest = parseRequest(StartShip, request, "a ship");
      if (isIdPrefix("ship", parsedRequest.of)) return await takeUp(await ships.find(parsedRequest.of), parsedRequest, owner);
      const work = await findWork(parsedRequest, parts);
      const { items } = await ships.list({ state: "open", owner, limit: OPEN_MAX });
      const before = items.find(({ own }) => isSame((own as unknown as ShipFacts).created, work));
      if (before !== undefined) return await takeUp(before.id, parsedRequest, owner);
      const created = await newShip(parsedRequest, work, { ...parts, owner });
      const id = await ships.start({ id: newId("ship"), title: created.data.title, owner, events: [created] });
      return shipView(await ships.get(id));
    },
    get: details,
    async list(options = {}) {
      const isWhole = ({ own }: JobFacts) => (own as unknown as ShipFacts).created !== null;
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
      const waiting = delay(seconds * 1000, undefined, { signal: until }).then(() => end.abort());
      const timer = ignore(waiting, "an event or the caller ended the wait");
      try {
        // The event only signals a change; we read the result afterwards.
        for await (const _ of ships.events(id, { fromSeq: afterSeq + 1, follow: true, signal: until })) break;
      } catch (error) {
        if (!until.aborted) throw error;
      }
      end.abort();
      await timer;
      if (signal?.aborted === true) throw new CaissonError("cancelled", `watching ${id} was cancelled`);
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

/** Returns whether both ship the same work to the same remote. */
function isSame(one: ShipFacts["created"], { session, target }: Pick<NamedWork, "session" | "target">): boolean {
  return one !== null && one.session === session.id && one.target.remote === target.remote;
}

/** Throws `invalid` for impossible options, and `conflict` for another remote, which would need another ship. */
function checkRemote(id: string, request: z.output<typeof StartShip>, { target }: NonNullable<ShipFacts["created"]>): void {
  const { to = target.remote, forge = target.forge, allowPrivate = target.allowPrivate } = request;
  const { remote } = shipTarget({ ...request, to, forge, allowPrivate }, { kind: "empty" });
  if (remote === target.remote) return;
  throw new CaissonError("conflict", `${id} already goes to ${target.remote}`, {
    hint: "To ship to another remote, name the run or the session instead.",
  });
}

async function evidenceAgain(
  request: z.output<typeof StartShip>,
  session: string,
  parts: Pick<StartShipParts, "runs" | "sessions">,
): Promise<TestEvidence> {
  return await evidenceFor(request, { session, runs: await runsOf(await parts.sessions.get(session), parts) }, parts);
}
