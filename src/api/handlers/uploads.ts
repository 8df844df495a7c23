import { defined } from "../../lib/defined.ts";
import { type Handlers, nothing } from "../call.ts";

type Name = Extract<keyof Handlers, `uploads.${string}`>;

export const uploadHandlers: Handlers<Name> = {
  "uploads.put": async ({ station, query, body, owner, signal }) => ({
    json: await station.uploads.put(body, { owner, signal, ...defined(query) }),
  }),
  "uploads.list": async ({ station, query }) => ({ json: { uploads: await station.uploads.list(defined(query)) } }),
  "uploads.get": async ({ station, params }) => ({ json: await station.uploads.get(params.upload) }),
  async "uploads.remove"({ station, params }) {
    await station.uploads.remove(params.upload);
    return nothing;
  },
};
