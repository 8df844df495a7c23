import { defined } from "../../lib/defined.ts";
import type { MergeVerbs } from "../../station/merges/verbs.ts";
import { type Handlers, nothing } from "../call.ts";
import { eventsOfDriven, overOrAsItIs } from "../driven-answers.ts";

type Name = Extract<keyof Handlers, `merges.${string}`>;
/** As they are in the log, which has a version for each. */
type FollowedMerges = Pick<MergeVerbs, "get"> & {
  events(
    ...given: Parameters<MergeVerbs["events"]>
  ): AsyncIterable<{ seq: number; type: string; version: number; at: string; data: never }>;
};

export const mergeHandlers: Handlers<Name> = {
  "merges.start": async ({ station, body }) => ({ json: await station.merges.start(body) }),
  "merges.list": async ({ station, query }) => ({ json: await station.merges.list(defined(query)) }),
  "merges.get": async ({ station, params }) => ({ json: await station.merges.get(params.merge) }),
  "merges.events": async ({ station, params, ...call }) => await eventsOfDriven(station.merges as FollowedMerges, params.merge, call),
  "merges.wait": async ({ station, params, query, signal }) => ({
    json: await overOrAsItIs(station.merges, params.merge, { signal, ...query }),
  }),
  "merges.resolve": async ({ station, params, body, by }) => ({ json: await station.merges.resolve(params.merge, body, { by }) }),
  "merges.cancel": async ({ station, params, body, by }) => ({ json: await station.merges.cancel(params.merge, { by, ...body }) }),
  "merges.pause": async ({ station, params, body, by }) => ({ json: await station.merges.pause(params.merge, { by, ...body }) }),
  "merges.resume": async ({ station, params, by }) => ({ json: await station.merges.resume(params.merge, { by }) }),
  async "merges.remove"({ station, params }) {
    await station.merges.remove(params.merge);
    return nothing;
  },
};
