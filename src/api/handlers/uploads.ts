import { defined } from "../../lib/defined.ts";
import { type Handlers, nothing } from "../call.ts";

type Name = Extract<keyof Handlers, `uploads.${string}`>;

export const uploadHandlers: Handlers<Name> = {
  "uploads.put": async ({ station, query, body, owner, signal }) => ({
    json: await station.uploads.put(body, { owner, signal, ...defined(query) }),
  }),
  // Who asks for a digest wants to use what it finds, and may use only their own.
  "uploads.list": async ({ station, query, owner }) => ({
    json: { uploads: await station.uploads.list(query.digest === undefined ? {} : { digest: query.digest, owner }) },
  }),
  "uploads.get": async ({ station, params }) => ({ json: await station.uploads.get(params.upload) }),
  async "uploads.remove"({ station, params }) {
    await station.uploads.remove(params.upload);
    return nothing;
  },
};
