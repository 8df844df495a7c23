import type { ShutDown, StationStatus } from "../../verbs/station-routes.ts";
import type { Call, Handlers } from "../call.ts";
import { codeRefused, type PendingCode, type SignInCodes } from "../sign-in-codes.ts";

/** The server, as its own calls control it. */
export interface StationControl {
  status(): StationStatus;
  /** Asks the server to end, which it does after the answer. */
  shutDown(request: ShutDown): void;
  openApi(): Promise<Record<string, unknown>>;
  codes: SignInCodes;
}

type Name = Extract<keyof Handlers, `station.${string}` | `codes.${string}`>;

export function stationHandlers(server: StationControl): Handlers<Name> {
  // The document is the same for the lifetime of the process.
  let document: ReturnType<StationControl["openApi"]> | undefined;
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
    "codes.create": async (call) => ({ json: server.codes.create(call.body, call) }),
    "codes.view": async (call) => ({ json: pendingOf(call).view }),
    "codes.exchange": async (call) => ({ json: await server.codes.exchange(pendingOf(call)) }),
  };
}

function pendingOf({ caller }: Pick<Call<"codes.view">, "caller">): PendingCode {
  if (caller.kind === "code") return caller.pending;
  throw codeRefused();
}
