import { type Handlers, nothing } from "../call.ts";
import { eventsOfDriven, overOrAsItIs } from "../driven-answers.ts";

type Name = Extract<keyof Handlers, `ships.${string}`>;

export const shipHandlers: Handlers<Name> = {
  "ships.start": async ({ station, body }) => ({ json: await station.ships.start(body) }),
  "ships.list": async ({ station, query }) => ({ json: await station.ships.list(query) }),
  "ships.get": async ({ station, params }) => ({ json: await station.ships.get(params.ship) }),
  "ships.events": async ({ station, params, ...call }) => await eventsOfDriven(station.ships, params.ship, call),
  "ships.wait": async ({ station, params, query, signal }) => ({
    json: await overOrAsItIs(station.ships, params.ship, { ...query, signal }),
  }),
  "ships.watch": async ({ station, params, query, signal }) => ({ json: await station.ships.watch(params.ship, query, { signal }) }),
  "ships.merge": async ({ station, params, by }) => ({ json: await station.ships.merge(params.ship, { by }) }),
  "ships.resume": async ({ station, params, by }) => ({ json: await station.ships.resume(params.ship, { by }) }),
  "ships.pause": async ({ station, params, body, by }) => ({ json: await station.ships.pause(params.ship, { ...body, by }) }),
  "ships.cancel": async ({ station, params, by }) => ({ json: await station.ships.cancel(params.ship, { by }) }),
  async "ships.remove"({ station, params }) {
    await station.ships.remove(params.ship);
    return nothing;
  },
};
