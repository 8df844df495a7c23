import { CaissonError } from "../../contract/error.ts";
import type { FedEvent, RunView } from "../../contract/run-verbs.ts";
import { defined } from "../../lib/defined.ts";
import type { NumberedRunEvent, RunVerbs } from "../../station/runs/verbs.ts";
import { type Handlers, nothing } from "../call.ts";
import { sequenceOf } from "../last-event-id.ts";
import { createPageRoom, numbered } from "../numbered-events.ts";
import { createFilter, streamedOf } from "../streams/event-filter.ts";

type Name = Extract<keyof Handlers, `runs.${string}`>;

export const runHandlers: Handlers<Name> = {
  // Not with the request's signal: the run goes on when the caller has gone.
  "runs.start": async ({ station, body, traceparent }) => ({
    json: await station.runs.start({ ...defined({ traceparent: traceparent ?? undefined }), ...body }),
  }),
  async "runs.list"({ station, query }) {
    const { parent, ...rest } = query;
    return {
      json: await station.runs.list({ ...defined(rest), ...(parent !== undefined && { parent: parent === "none" ? null : parent }) }),
    };
  },
  "runs.get": async ({ station, params }) => ({ json: await station.runs.get(params.run) }),
  async "runs.events"({ station, params, query, wants, lastEventId, signal }) {
    if (wants === "json")
      return { json: await pageOf(station.runs.events(params.run, { fromSeq: query.fromSeq ?? 1, signal }), query.limit) };
    const fromSeq = lastEventId === null ? (query.fromSeq ?? 1) : sequenceOf(lastEventId) + 1;
    // A run that does not exist is no stream.
    await station.runs.get(params.run);
    return { events: numbered(station.runs.events(params.run, { fromSeq, follow: true, signal })) };
  },
  async "runs.allEvents"({ station, query, lastEventId, signal }) {
    const { afterPosition: asked, ...filter } = query;
    const afterPosition = lastEventId === null ? asked : sequenceOf(lastEventId);
    return { events: placed(station.runs.allEvents({ signal, ...defined({ afterPosition }) }), createFilter(filter)) };
  },
  "runs.lastPosition": async ({ station }) => ({ json: { position: await station.runs.lastPosition() } }),
  "runs.send": async ({ station, params, body }) => ({ json: await station.runs.send(params.run, body) }),
  async "runs.answer"({ station, params, body, by }) {
    await station.runs.answer(params.run, { ...body, by });
    return nothing;
  },
  async "runs.pause"({ station, params, body }) {
    await station.runs.pause(params.run, body);
    return nothing;
  },
  "runs.resume": async ({ station, params, body, by }) => ({ json: await station.runs.resume(params.run, { by, ...defined(body) }) }),
  "runs.continue": async ({ station, params, body, by }) => ({ json: await station.runs.continue(params.run, { ...body, by }) }),
  "runs.label": async ({ station, params, body, by }) => ({ json: await station.runs.label(params.run, body, { by }) }),
  "runs.prioritize": async ({ station, params, body, by }) => ({ json: await station.runs.prioritize(params.run, { ...body, by }) }),
  "runs.adopt": async ({ station, params, by }) => ({ json: await station.runs.adopt(params.run, { by }) }),
  "runs.queue": async ({ station }) => ({ json: await station.runs.queue() }),
  async "runs.stop"({ station, params, by, signal }) {
    await station.runs.stop(params.run, { by, signal });
    return nothing;
  },
  "runs.wait": async ({ station, params, query, signal }) => ({
    json: await endedOrAsItIs(station.runs, params.run, { signal, timeoutMs: query.timeoutMs }),
  }),
  async "runs.remove"({ station, params }) {
    await station.runs.remove(params.run);
    return nothing;
  },
  "runs.check": async ({ station }) => ({ json: { damage: await station.runs.check() } }),
};

async function endedOrAsItIs(
  runs: Pick<RunVerbs, "get" | "wait">,
  run: string,
  { signal, timeoutMs }: { signal: AbortSignal; timeoutMs: number },
): Promise<RunView> {
  const late = AbortSignal.timeout(timeoutMs);
  try {
    return await runs.wait(run, { signal: AbortSignal.any([signal, late]) });
  } catch (error) {
    const isLate = late.aborted && error instanceof CaissonError && error.code === "cancelled";
    if (!isLate) throw error;
    return runs.get(run);
  }
}

/** What can be read of a damaged log is given; asking for what follows tells what is wrong with it. */
async function pageOf(
  events: AsyncIterable<NumberedRunEvent>,
  limit: number,
): Promise<{ events: NumberedRunEvent[]; next: number | null }> {
  const page: NumberedRunEvent[] = [];
  const hasRoom = createPageRoom({ limit });
  try {
    for await (const event of events) {
      if (!hasRoom(event)) return { events: page, next: event.seq };
      page.push(event);
    }
  } catch (error) {
    const last = page.at(-1);
    if (last === undefined) throw error;
    return { events: page, next: last.seq + 1 };
  }
  return { events: page, next: null };
}

async function* placed(events: AsyncIterable<FedEvent>, passes: ReturnType<typeof createFilter>) {
  for await (const fed of events) {
    if (passes(streamedOf(fed))) yield { id: fed.position, type: fed.event?.type ?? "damaged", data: fed };
  }
}
