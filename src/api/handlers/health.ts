import type { Handlers } from "../call.ts";

export const healthHandlers: Handlers<Extract<keyof Handlers, `health.${string}`>> = {
  "health.list": async ({ station }) => ({ json: await station.health.list() }),
  "health.incidents": async ({ station }) => ({ json: { incidents: await station.health.incidents() } }),
  "health.incident": async ({ station, params }) => ({ json: await station.health.incident(params.incident) }),
};
