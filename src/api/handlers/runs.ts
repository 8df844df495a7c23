import { CaissonError } from "../../contract/error.ts";
import { defined } from "../../lib/defined.ts";
import type { NumberedRunEvent } from "../../station/runs/verbs.ts";
import type { Station } from "../../station/station.ts";
import { type Handlers, nothing } from "../call.ts";

type Name = Extract<keyof Handlers, `runs.${string}`>;

export function runHandlers({ runs }: Pick<Station, "runs">): Handlers<Name> {
  return {
    // Not with the request's signal: the run goes on when the caller has gone.
    "runs.start": async ({ body }) => ({ json: await runs.start(body) }),
    async "runs.list"({ query }) {
      const { parent, ...rest } = query;
      return { json: await runs.list({ ...defined(rest), ...(parent !== undefined && { parent: parent === "none" ? null : parent }) }) };
    },
    "runs.get": async ({ params }) => ({ json: await runs.get(params.run) }),
    async "runs.events"({ params, query, wants, lastEventId, signal }) {
      if (wants === "json") return { json: await pageOf(runs.events(params.run, { fromSeq: query.fromSeq ?? 1, signal }), query.limit) };
      const fromSeq = lastEventId === null ? (query.fromSeq ?? 1) : numberOf(lastEventId) + 1;
      // A run that does not exist is no stream.
      await runs.get(params.run);
      return { events: numbered(runs.events(params.run, { fromSeq, follow: true, signal })) };
    },
    async "runs.allEvents"({ query, lastEventId, signal }) {
      const afterPosition = lastEventId === null ? query.afterPosition : numberOf(lastEventId);
      return { events: placed(runs.allEvents({ signal, ...defined({ afterPosition }) })) };
    },
    "runs.send": async ({ params, body }) => ({ json: await runs.send(params.run, body) }),
    async "runs.answer"({ params, body, by }) {
      await runs.answer(params.run, { ...body, by });
      return nothing;
    },
    async "runs.pause"({ params, body }) {
      await runs.pause(params.run, body);
      return nothing;
    },
    "runs.resume": async ({ params, body, by }) => ({ json: await runs.resume(params.run, { by, ...defined(body) }) }),
    "runs.continue": async ({ params, body, by }) => ({ json: await runs.continue(params.run, { ...body, by }) }),
    async "runs.stop"({ params, by, signal }) {
      await runs.stop(params.run, { by, signal });
      return nothing;
    },
  };
}

async function pageOf(
  events: AsyncIterable<NumberedRunEvent>,
  limit: number,
): Promise<{ events: NumberedRunEvent[]; next: number | null }> {
  const page: NumberedRunEvent[] = [];
  for await (const event of events) {
    if (page.length === limit) return { events: page, next: event.seq };
    page.push(event);
  }
  return { events: page, next: null };
}

async function* numbered(events: AsyncIterable<NumberedRunEvent>) {
  for await (const event of events) yield { id: event.seq, type: event.type, data: event };
}

async function* placed<Fed extends { position: number; event: { type: string } | null }>(events: AsyncIterable<Fed>) {
  for await (const fed of events) yield { id: fed.position, type: fed.event?.type ?? "damaged", data: fed };
}

function numberOf(lastEventId: string): number {
  if (/^[0-9]{1,15}$/.test(lastEventId)) return Number(lastEventId);
  throw new CaissonError("invalid", `Last-Event-ID ${JSON.stringify(lastEventId.slice(0, 100))} is not a number`, {
    hint: "Send the id of the last event that came.",
  });
}
