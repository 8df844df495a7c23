import type { StationStatus } from "../../contract/api/station-routes.ts";
import { defined } from "../../lib/defined.ts";
import type { Station } from "../../station/station.ts";
import { type Handlers, nothing } from "../call.ts";

/** The server itself, as its own calls see it. */
export interface ServerControl {
  status(): StationStatus;
  /** Asks it to end, which it does after the answer. */
  shutDown(): void;
  openApi(): Promise<Record<string, unknown>>;
}

type Name = Extract<keyof Handlers, `station.${string}` | `tokens.${string}` | "machine.doctor" | "agents.list">;

export function stationHandlers(
  { tokens, machine, agents }: Pick<Station, "tokens" | "machine" | "agents">,
  server: ServerControl,
): Handlers<Name> {
  return {
    "station.status": async () => ({ json: server.status() }),
    async "station.shutdown"() {
      server.shutDown();
      return { json: { pid: server.status().pid } };
    },
    "station.openapi": async () => ({ json: await server.openApi() }),
    "tokens.list": async () => ({ json: { tokens: await tokens.list() } }),
    "tokens.create": async ({ body }) => ({ json: await tokens.create(body) }),
    async "tokens.revoke"({ params }) {
      await tokens.revoke(params.token);
      return nothing;
    },
    "machine.doctor": async ({ query }) => ({ json: await machine.doctor(defined(query)) }),
    "agents.list": async () => ({ json: { agents: await agents.list() } }),
  };
}
