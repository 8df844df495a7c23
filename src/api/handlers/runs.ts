import type { FedEvent } from "../../contract/feed/fed-event.ts";
import { defined } from "../../lib/defined.ts";
import type { Handlers } from "../call.ts";
import { sequenceOf } from "../last-event-id.ts";
import { createFilter, streamedOf } from "../streams/event-filter.ts";

type Name = "runs.start" | "runs.list" | "runs.allEvents" | "runs.send" | "runs.resume" | "runs.continue" | "runs.fork";

export const runHandlers: Handlers<Name> = {
  // Does not use the request's signal: the run continues if the caller disconnects.
  "runs.start": async ({ station, body, traceparent }) => ({
    json: await station.runs.start({ ...defined({ traceparent: traceparent ?? undefined }), ...body }),
  }),
  async "runs.list"({ station, query }) {
    const { parent, ...rest } = query;
    return {
      json: await station.runs.list({ ...defined(rest), ...(parent !== undefined && { parent: parent === "none" ? null : parent }) }),
    };
  },
  async "runs.allEvents"({ station, query, lastEventId, signal }) {
    const { afterPosition: fromQuery, ...filter } = query;
    const afterPosition = lastEventId === null ? fromQuery : sequenceOf(lastEventId);
    return { events: withPosition(station.runs.allEvents({ signal, ...defined({ afterPosition }) }), createFilter(filter)) };
  },
  "runs.send": async ({ station, params, body }) => ({ json: await station.runs.send(params.run, body) }),
  "runs.resume": async ({ station, params, body, by }) => ({ json: await station.runs.resume(params.run, { by, ...defined(body) }) }),
  "runs.continue": async ({ station, params, body, by }) => ({ json: await station.runs.continue(params.run, { ...body, by }) }),
  "runs.fork": async ({ station, params, body, by }) => ({ json: { runs: await station.runs.fork(params.run, { ...body, by }) } }),
};

async function* withPosition(events: AsyncIterable<FedEvent>, passes: ReturnType<typeof createFilter>) {
  for await (const fed of events) {
    if (passes(streamedOf(fed))) yield { id: fed.position, type: fed.event?.type ?? "damaged", data: fed };
  }
}
