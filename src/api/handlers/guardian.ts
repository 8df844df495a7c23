import type { Handlers } from "../call.ts";

export const guardianHandlers: Handlers<Extract<keyof Handlers, `guardian.${string}`>> = {
  "guardian.status": async ({ station }) => ({ json: await station.guardian.status() }),
  "guardian.log": async ({ station, query }) => ({ json: { decisions: await station.guardian.log(query) } }),
  "guardian.explain": async ({ station, params }) => ({ json: await station.guardian.explain(params.run) }),
};
