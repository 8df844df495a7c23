import type { Handlers } from "../call.ts";

type Name = Extract<keyof Handlers, `ships.${string}`>;

export const shipHandlers: Handlers<Name> = {
  "ships.start": async ({ station, body }) => ({ json: await station.ships.start(body) }),
  "ships.list": async ({ station, query }) => ({ json: await station.ships.list(query) }),
  "ships.get": async ({ station, params }) => ({ json: await station.ships.get(params.ship) }),
  "ships.watch": async ({ station, params, query, signal }) => ({ json: await station.ships.watch(params.ship, query, { signal }) }),
  "ships.merge": async ({ station, params, by }) => ({ json: await station.ships.merge(params.ship, { by }) }),
  "ships.resume": async ({ station, params, by }) => ({ json: await station.ships.resume(params.ship, { by }) }),
  "ships.cancel": async ({ station, params, by }) => ({ json: await station.ships.cancel(params.ship, { by }) }),
};
