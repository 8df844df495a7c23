import type { Handlers } from "../call.ts";

export const inboxHandlers: Handlers<Extract<keyof Handlers, `inbox.${string}`>> = {
  "inbox.list": async ({ station }) => ({ json: await station.inbox.list() }),
};
