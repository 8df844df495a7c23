import { defined } from "../../lib/defined.ts";
import { type Handlers, nothing } from "../call.ts";
import { eventsOfDriven, overOrAsItIs } from "../driven-answers.ts";

type Name = Extract<keyof Handlers, `workflows.${string}`>;

export const workflowHandlers: Handlers<Name> = {
  "workflows.validate": async ({ station, body }) => ({ json: await station.workflows.validate(body.definition) }),
  "workflows.start": async ({ station, body }) => ({ json: await station.workflows.start(defined(body)) }),
  async "workflows.list"({ station, query }) {
    const { parent, ...rest } = query;
    return {
      json: await station.workflows.list({ ...defined(rest), ...(parent !== undefined && { parent: parent === "none" ? null : parent }) }),
    };
  },
  "workflows.get": async ({ station, params }) => ({ json: await station.workflows.get(params.workflow) }),
  "workflows.events": async ({ station, params, ...call }) => await eventsOfDriven(station.workflows, params.workflow, call),
  "workflows.wait": async ({ station, params, query, signal }) => ({
    json: await overOrAsItIs(station.workflows, params.workflow, { ...query, signal }),
  }),
  "workflows.cancel": async ({ station, params, body, by }) => ({
    json: await station.workflows.cancel(params.workflow, { ...defined(body), by }),
  }),
  "workflows.pause": async ({ station, params, body, by }) => ({
    json: await station.workflows.pause(params.workflow, { ...defined(body), by }),
  }),
  "workflows.resume": async ({ station, params, by }) => ({ json: await station.workflows.resume(params.workflow, { by }) }),
  "workflows.signal": async ({ station, params, body, by }) => ({ json: await station.workflows.signal(params.workflow, { ...body, by }) }),
  "workflows.approve": async ({ station, params, body, by }) => ({
    json: await station.workflows.approve(params.workflow, { ...body, by }),
  }),
  "workflows.retry": async ({ station, params, by }) => ({ json: await station.workflows.retry(params.workflow, { by }) }),
  async "workflows.remove"({ station, params }) {
    await station.workflows.remove(params.workflow);
    return nothing;
  },
};
