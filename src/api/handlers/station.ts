import type { ShutDown, StationStatus } from "../../contract/api/station-routes.ts";
import type { Call, Handlers } from "../call.ts";
import { codeRefused, type PendingCode, type SignInCodes } from "../sign-in-codes.ts";

/** The server itself, as its own calls see it. */
export interface ServerControl {
  status(): StationStatus;
  /** Asks it to end, which it does after the answer. */
  shutDown(request: ShutDown): void;
  openApi(): Promise<Record<string, unknown>>;
  codes: SignInCodes;
}

type Name = Extract<keyof Handlers, `station.${string}` | `tokens.${string}` | `codes.${string}` | "audit.list">;

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
    "codes.create": async (call) => ({ json: server.codes.create(call.body, call) }),
    "codes.view": async (call) => ({ json: pendingOf(call).view }),
    "codes.exchange": async (call) => ({ json: await server.codes.exchange(pendingOf(call)) }),
    "audit.list": async ({ station, query }) => ({ json: await station.audit.list(query) }),
  };
}

function pendingOf({ caller }: Pick<Call<"codes.view">, "caller">): PendingCode {
  if (caller.kind === "code") return caller.pending;
  throw codeRefused();
}
