import { type Handlers, nothing } from "../call.ts";

type Name = Extract<keyof Handlers, `secrets.${string}`>;

export const secretHandlers: Handlers<Name> = {
  "secrets.list": async ({ station, owner }) => ({ json: { secrets: await station.secrets.list({ owner }) } }),
  "secrets.set": async ({ station, params, body, owner }) => ({ json: await station.secrets.set(params.secret, body, { owner }) }),
  async "secrets.remove"({ station, params, owner }) {
    await station.secrets.remove(params.secret, { owner });
    return nothing;
  },
};
