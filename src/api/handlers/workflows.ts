import { CaissonError } from "../../contract/error.ts";
import { defined } from "../../lib/defined.ts";
import type { WorkflowVerbs } from "../../station/workflows/verbs.ts";
import { type Handlers, nothing } from "../call.ts";
import { sequenceOf } from "../last-event-id.ts";

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
  async "workflows.events"({ station, params, query, wants, lastEventId, signal }) {
    const { workflows } = station;
    if (wants === "json") {
      const page = [];
      for await (const event of workflows.events(params.workflow, { fromSeq: query.fromSeq ?? 1, signal })) {
        if (page.length === query.limit) return { json: { events: page, next: event.seq } };
        page.push(event);
      }
      return { json: { events: page, next: null } };
    }
    const fromSeq = lastEventId === null ? (query.fromSeq ?? 1) : sequenceOf(lastEventId) + 1;
    // One that does not exist is no stream.
    const { id } = await workflows.get(params.workflow);
    return { events: numbered(workflows.events(id, { fromSeq, follow: true, signal })) };
  },
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

async function* numbered<Event extends { seq: number; type: string }>(events: AsyncIterable<Event>) {
  for await (const event of events) yield { id: event.seq, type: event.type, data: event };
}

async function overOrAsItIs(
  workflows: WorkflowVerbs,
  word: string,
  { timeoutMs, orPerson, signal }: { timeoutMs: number; orPerson: boolean; signal: AbortSignal },
) {
  const enough = AbortSignal.timeout(timeoutMs);
  try {
    return await workflows.wait(word, { orPerson, signal: AbortSignal.any([signal, enough]) });
  } catch (error) {
    if (!(error instanceof CaissonError) || error.code !== "cancelled" || signal.aborted) throw error;
    return await workflows.get(word);
  }
}
