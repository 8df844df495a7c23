import type { NetworkEvent } from "../../contract/network-event.ts";
import { type Handlers, nothing, type SentEvent } from "../call.ts";
import { sequenceOf } from "../last-event-id.ts";

type Name = Extract<keyof Handlers, `networks.${string}` | `ports.${string}` | `previews.${string}`>;

export const networkHandlers: Handlers<Name> = {
  "networks.show": async ({ station, params }) => ({ json: await station.networks.show(params.sandbox) }),
  "networks.change": async ({ station, params, body, by }) => ({ json: await station.networks.change(params.sandbox, { ...body, by }) }),
  async "networks.revoke"({ station, params, by }) {
    await station.networks.revoke(params.sandbox, { secret: params.secret, by });
    return nothing;
  },
  async "networks.log"({ station, params, query, wants, lastEventId, signal }) {
    const skip = query.skip ?? 0;
    if (wants === "json") return { json: await pageOf(station.networks.log(params.sandbox, { signal }), { skip, limit: query.limit }) };
    const last = lastEventId === null ? skip : sequenceOf(lastEventId);
    // A log that does not exist is no stream.
    for await (const _event of station.networks.log(params.sandbox, { signal })) break;
    return { events: counted(station.networks.log(params.sandbox, { follow: true, signal }), { after: last }) };
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

async function pageOf(
  events: AsyncIterable<NetworkEvent>,
  { skip, limit }: { skip: number; limit: number },
): Promise<{ events: NetworkEvent[]; next: number | null }> {
  const page: NetworkEvent[] = [];
  let count = 0;
  for await (const event of events) {
    if (page.length === limit) return { events: page, next: count };
    count += 1;
    if (count > skip) page.push(event);
  }
  return { events: page, next: null };
}

async function* counted(events: AsyncIterable<NetworkEvent>, { after }: { after: number }): AsyncGenerator<SentEvent<NetworkEvent>> {
  let id = 0;
  for await (const event of events) {
    id += 1;
    if (id > after) yield { id, type: event.type, data: event };
  }
}

async function* typed<Event extends { type: string }>(events: AsyncIterable<Event>): AsyncGenerator<SentEvent<Event>> {
  for await (const event of events) yield { type: event.type, data: event };
}
