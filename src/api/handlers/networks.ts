import { type Handlers, nothing, type SentEvent } from "../call.ts";
import { sequenceOf } from "../last-event-id.ts";
import { numbered, pageOf } from "../numbered-events.ts";

type Name = Extract<keyof Handlers, `networks.${string}` | `ports.${string}` | `previews.${string}`>;

export const networkHandlers: Handlers<Name> = {
  "networks.show": async ({ station, params }) => ({ json: await station.networks.show(params.sandbox) }),
  "networks.change": async ({ station, params, body, by }) => ({ json: await station.networks.change(params.sandbox, { ...body, by }) }),
  async "networks.revoke"({ station, params, by }) {
    await station.networks.revoke(params.sandbox, { secret: params.secret, by });
    return nothing;
  },
  async "networks.log"({ station, params, query, wants, lastEventId, signal }) {
    const { fromSeq = 1, limit } = query;
    const log = (how: { fromSeq: number; follow?: boolean }) => station.networks.log(params.sandbox, { ...how, signal });
    if (wants === "json") return { json: await pageOf(log({ fromSeq }), limit) };
    // A log that does not exist is no stream.
    for await (const _event of log({ fromSeq })) break;
    return { events: numbered(log({ fromSeq: lastEventId === null ? fromSeq : sequenceOf(lastEventId) + 1, follow: true })) };
  },
  async "ports.list"({ station, params, query, signal }) {
    if (query.all !== true) return { json: { ports: await station.networks.ports(params.sandbox) } };
    await using held = await station.sandboxes.hold(params.sandbox, { signal });
    return { json: { ports: await held.listeners() } };
  },
  async "ports.watch"({ station, params, signal }) {
    // A sandbox that does not exist is no stream.
    await station.networks.ports(params.sandbox);
    return { events: typed(station.networks.watchPorts(params.sandbox, { signal })) };
  },
  "previews.open": async ({ station, params, body }) => ({ json: await station.networks.keepPreview(params.sandbox, body) }),
  "previews.list": async ({ station }) => ({ json: { previews: await station.networks.previews() } }),
  async "previews.close"({ station, params }) {
    await station.networks.closePreview(params.preview);
    return nothing;
  },
};

async function* typed<Event extends { type: string }>(events: AsyncIterable<Event>): AsyncGenerator<SentEvent<Event>> {
  for await (const event of events) yield { type: event.type, data: event };
}
