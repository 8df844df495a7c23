import type { Station } from "../../station/station.ts";
import { type Handlers, nothing } from "../call.ts";

type Name = Extract<keyof Handlers, `sandboxes.${string}` | `snapshots.${string}`>;

export function sandboxHandlers({ sandboxes }: Pick<Station, "sandboxes">): Handlers<Exclude<Name, "sandboxes.exec">> {
  return {
    async "sandboxes.create"({ body, signal }) {
      const { spec, ...rest } = body;
      await using held = await sandboxes.create({ ...rest, spec: { ...spec, keep: true } }, { signal });
      return { json: held.info };
    },
    "sandboxes.list": async () => ({ json: await sandboxes.list() }),
    "sandboxes.get": async ({ params }) => ({ json: await sandboxes.get(params.sandbox) }),
    async "sandboxes.remove"({ params }) {
      await sandboxes.remove(params.sandbox);
      return nothing;
    },
    "sandboxes.stats": async ({ params }) => ({ json: await sandboxes.stats(params.sandbox) }),
    async "sandboxes.pause"({ params }) {
      await sandboxes.pause(params.sandbox);
      return nothing;
    },
    async "sandboxes.resume"({ params }) {
      await sandboxes.resume(params.sandbox);
      return nothing;
    },
    "sandboxes.fork": async ({ params }) => ({ json: await sandboxes.fork(params.sandbox) }),
    "sandboxes.snapshot": async ({ params, body }) => ({ json: await sandboxes.snapshot(params.sandbox, body) }),
    "snapshots.list": async () => ({ json: { snapshots: await sandboxes.snapshots() } }),
    async "snapshots.remove"({ params }) {
      await sandboxes.removeSnapshot(params.snapshot);
      return nothing;
    },
  };
}
