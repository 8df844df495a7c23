import { defined } from "../../lib/defined.ts";
import { begun } from "../begun.ts";
import { type Handlers, nothing } from "../call.ts";

type Name = Extract<keyof Handlers, `machine.${string}` | `images.${string}`>;

export const machineHandlers: Handlers<Name> = {
  "machine.doctor": async ({ station, query }) => ({ json: await station.machine.doctor(defined(query)) }),
  "machine.find": async ({ station, query }) => ({ json: await station.machine.find(query.word) }),
  "machine.models": async ({ station, query }) => ({ json: await station.machine.models(defined(query)) }),
  "machine.stats": async ({ station }) => ({ json: await station.machine.stats() }),
  "machine.usage": async ({ station }) => ({ json: await station.machine.usage() }),
  "machine.prune": async ({ station, body }) => ({ json: await station.machine.prune(body) }),
  "machine.backup": async ({ station, body }) => ({ bytes: await begun(station.machine.backup(body)) }),
  "machine.choose": async ({ station, body }) => ({ json: { choice: await station.machine.choose(body) } }),
  "machine.attack": async ({ station, body }) => ({ events: byField(await begun(station.machine.attack(body))) }),
  "machine.conformance": async ({ station, body }) => ({ events: byField(await begun(station.machine.conformance(body))) }),
  "images.list": async ({ station }) => ({ json: { images: await station.images.list() } }),
  "images.build": async ({ station, body }) => ({ events: byField(await begun(station.images.build(body))) }),
  async "images.remove"({ station, params }) {
    await station.images.remove(params.image);
    return nothing;
  },
};

/** Each has one field, whose name says what it is. */
async function* byField<Item extends object>(items: AsyncIterable<Item>) {
  for await (const item of items) yield { type: Object.keys(item)[0] as string, data: item };
}
