import { CaissonError } from "../../contract/error.ts";
import type { MergeView } from "../../contract/merge-verbs.ts";
import { defined } from "../../lib/defined.ts";
import type { MergeVerbs } from "../../station/merges/verbs.ts";
import { type Handlers, nothing } from "../call.ts";
import { sequenceOf } from "../last-event-id.ts";

type Name = Extract<keyof Handlers, `merges.${string}`>;
type Entry = { seq: number; type: string; version: number; at: string; data: never };

export const mergeHandlers: Handlers<Name> = {
  "merges.start": async ({ station, body }) => ({ json: await station.merges.start(body) }),
  "merges.list": async ({ station, query }) => ({ json: await station.merges.list(defined(query)) }),
  "merges.get": async ({ station, params }) => ({ json: await station.merges.get(params.merge) }),
  async "merges.events"({ station, params, query, wants, lastEventId, signal }) {
    const events = (options: { fromSeq: number; follow: boolean }) =>
      station.merges.events(params.merge, { ...options, signal }) as AsyncIterable<Entry>;
    if (wants === "json") return { json: await pageOf(events({ fromSeq: query.fromSeq ?? 1, follow: false }), query.limit) };
    // One that does not exist is no stream.
    await station.merges.get(params.merge);
    const fromSeq = lastEventId === null ? (query.fromSeq ?? 1) : sequenceOf(lastEventId) + 1;
    return { events: numbered(events({ fromSeq, follow: true })) };
  },
  "merges.wait": async ({ station, params, query, signal }) => ({
    json: await endedOrAsItIs(station.merges, params.merge, { signal, ...query }),
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

async function endedOrAsItIs(
  merges: Pick<MergeVerbs, "get" | "wait">,
  merge: string,
  { signal, timeoutMs, orPerson = false }: { signal: AbortSignal; timeoutMs: number; orPerson?: boolean | undefined },
): Promise<MergeView> {
  const late = AbortSignal.timeout(timeoutMs);
  try {
    return await merges.wait(merge, { orPerson, signal: AbortSignal.any([signal, late]) });
  } catch (error) {
    const isLate = late.aborted && error instanceof CaissonError && error.code === "cancelled";
    if (!isLate) throw error;
    return await merges.get(merge);
  }
}

async function pageOf(events: AsyncIterable<Entry>, limit: number): Promise<{ events: Entry[]; next: number | null }> {
  const page: Entry[] = [];
  for await (const event of events) {
    if (page.length === limit) return { events: page, next: event.seq };
    page.push(event);
  }
  return { events: page, next: null };
}

async function* numbered(events: AsyncIterable<Entry>) {
  for await (const event of events) yield { id: event.seq, type: event.type, data: event };
}
