import type { Caller } from "./call.ts";
import { type Authenticate, checkOrigin, createGate, type StationNames } from "./gate.ts";

/** How a request came: by the socket in the state folder, or over TCP from an address. */
export type Arrival = { via: "socket" } | { via: "port"; address: string };

export interface Admitted {
  caller: Caller;
  /** Whether its token still is one; absent for a caller that needs none. */
  stillValid: (() => Promise<boolean>) | undefined;
}

/** Throws `denied` for a foreign host or page, `unauthenticated`, and `busy` for one who tries too much. */
export type Admit = (request: { headers: Headers; authorization: string | null; arrival: Arrival }) => Promise<Admitted>;

/** One for all ways in, so that wrong tokens are counted together. */
export function createAdmission({ authenticate, names }: { authenticate: Authenticate; names: StationNames }): Admit {
  const gate = createGate({ authenticate });
  return async ({ headers, authorization, arrival }) => {
    checkOrigin({ headers, via: arrival.via, names });
    if (arrival.via === "socket") return { caller: { kind: "socket" }, stillValid: undefined };
    const { secret, token } = await gate.admit({ authorization, address: arrival.address });
    return { caller: { kind: "token", token }, stillValid: async () => (await authenticate(secret)) !== null };
  };
}
