import { CaissonError } from "../../contract/error.ts";
import type { SpecView } from "../../contract/spec-verbs.ts";
import { defined } from "../../lib/defined.ts";
import type { SpecVerbs } from "../../station/specs/verbs.ts";
import type { Handlers } from "../call.ts";
import { eventsOfDriven } from "../driven-answers.ts";

type Name = Extract<keyof Handlers, `specs.${string}`>;

export const specHandlers: Handlers<Name> = {
  "specs.create": async ({ station, body }) => ({ json: await station.specs.create(body) }),
  "specs.list": async ({ station, query }) => ({ json: await station.specs.list(defined(query)) }),
  "specs.get": async ({ station, params }) => ({ json: await station.specs.get(params.spec) }),
  "specs.execute": async ({ station, params, body, by }) => ({ json: await station.specs.execute(params.spec, { ...defined(body), by }) }),
  "specs.decide": async ({ station, params, body, by }) => ({ json: await station.specs.decide(params.spec, { ...body, by }) }),
  "specs.edit": async ({ station, params, body, by }) => ({ json: await station.specs.edit(params.spec, { ...body, by }) }),
  "specs.cancel": async ({ station, params, by }) => ({ json: await station.specs.cancel(params.spec, { by }) }),
  "specs.wait": async ({ station, params, query, signal }) => ({
    json: await settledOrAsItIs(station.specs, params.spec, { signal, timeoutMs: query.timeoutMs }),
  }),
  async "specs.events"({ station: { specs }, params, ...call }) {
    const get = async (word: string) => ({ id: (await specs.get(word)).spec });
    return await eventsOfDriven({ get, events: specs.events }, params.spec, call);
  },
  "specs.diff": async ({ station, params, query }) => ({ json: await station.specs.diff(params.spec, defined(query)) }),
  "specs.export": async ({ station, params, query }) => ({ json: await station.specs.export(params.spec, defined(query)) }),
  "specs.remove": async ({ station, params }) => ({ json: await station.specs.remove(params.spec) }),
};

async function settledOrAsItIs(
  specs: Pick<SpecVerbs, "get" | "wait">,
  spec: string,
  { signal, timeoutMs }: { signal: AbortSignal; timeoutMs: number },
): Promise<SpecView> {
  const late = AbortSignal.timeout(timeoutMs);
  try {
    return await specs.wait(spec, { signal: AbortSignal.any([signal, late]) });
  } catch (error) {
    if (late.aborted && error instanceof CaissonError && error.code === "cancelled") return await specs.get(spec);
    throw error;
  }
}
