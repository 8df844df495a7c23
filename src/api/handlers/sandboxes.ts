import { defined } from "../../lib/defined.ts";
import { type Handlers, nothing } from "../call.ts";

type Name = Extract<keyof Handlers, `sandboxes.${string}` | `snapshots.${string}`>;

export const sandboxHandlers: Handlers<Exclude<Name, "sandboxes.exec">> = {
  async "sandboxes.create"({ station, body, signal }) {
    const { spec, ...rest } = body;
    await using held = await station.sandboxes.create({ ...rest, spec: { ...spec, keep: true } }, { signal });
    return { json: held.info };
  },
  "sandboxes.list": async ({ station, query }) => ({ json: await station.sandboxes.list(defined(query)) }),
  "sandboxes.get": async ({ station, params }) => ({ json: await station.sandboxes.get(params.sandbox) }),
  async "sandboxes.remove"({ station, params }) {
    await station.sandboxes.remove(params.sandbox);
    return nothing;
  },
  "sandboxes.stats": async ({ station, params }) => ({ json: await station.sandboxes.stats(params.sandbox) }),
  "sandboxes.label": async ({ station, params, body }) => ({ json: await station.sandboxes.label(params.sandbox, body) }),
  async "sandboxes.pause"({ station, params }) {
    await station.sandboxes.pause(params.sandbox);
    return nothing;
  },
  async "sandboxes.resume"({ station, params }) {
    await station.sandboxes.resume(params.sandbox);
    return nothing;
  },
  "sandboxes.fork": async ({ station, params }) => ({ json: await station.sandboxes.fork(params.sandbox) }),
  "sandboxes.snapshot": async ({ station, params, body }) => ({ json: await station.sandboxes.snapshot(params.sandbox, body) }),
  "sandboxes.changedFiles": async ({ station, params }) => ({ json: { changed: await station.sandboxes.changedFiles(params.sandbox) } }),
  async "sandboxes.sweep"({ station }) {
    await station.sandboxes.sweep();
    return nothing;
  },
  "snapshots.list": async ({ station, query }) => ({ json: await station.sandboxes.snapshots(defined(query)) }),
  async "snapshots.remove"({ station, params }) {
    await station.sandboxes.removeSnapshot(params.snapshot);
    return nothing;
  },
};
