import type { ShutDown, StationStatus } from "../../contract/api/station-routes.ts";
import type { Handlers } from "../call.ts";

/** The server itself, as its own calls see it. */
export interface ServerControl {
  status(): StationStatus;
  /** Asks it to end, which it does after the answer. */
  shutDown(request: ShutDown): void;
  openApi(): Promise<Record<string, unknown>>;
}

type Name = Extract<keyof Handlers, `station.${string}` | `tokens.${string}` | "audit.list">;

export function stationHandlers(server: ServerControl): Handlers<Name> {
  // It is the same as long as this program is.
  let document: ReturnType<ServerControl["openApi"]> | undefined;
  return {
    "station.status": async ({ by, owner, scope }) => ({ json: { ...server.status(), caller: { by, owner, scope } } }),
    async "station.shutdown"({ body }) {
      server.shutDown(body);
      return { json: { pid: server.status().pid } };
    },
    async "station.openapi"() {
      document ??= server.openApi();
      return { json: await document };
    },
    "tokens.list": async ({ station }) => ({ json: { tokens: await station.tokens.list() } }),
    "tokens.create": async ({ station, body }) => ({ json: await station.tokens.create(body) }),
    "tokens.rotate": async ({ station, params, body }) => ({ json: await station.tokens.rotate(params.token, body) }),
    "tokens.revoke": async ({ station, params }) => ({ json: await station.tokens.revoke(params.token) }),
    "audit.list": async ({ station, query }) => ({ json: await station.audit.list(query) }),
  };
}
