import { CaissonError } from "../contract/error/error.ts";
import type { Caller } from "./call.ts";
import {
  type Authenticate,
  type AuthenticateSandbox,
  checkOrigin,
  createGate,
  type FindCode,
  type Gate,
  hasSandboxToken,
  type StationNames,
} from "./gate.ts";
import type { PortConnection } from "./port-connections.ts";

const RETRY_AFTER_S = 1;

/** How a request arrived: over the socket in the state folder, over TCP from an address, or from inside a sandbox. */
export type Arrival = { via: "socket" } | { via: "port"; address: string; connection?: PortConnection } | { via: "inside" };

export interface Admitted {
  caller: Caller;
  /** Checks that the token is still valid. Absent for callers that need no token. */
  stillValid: (() => Promise<boolean>) | undefined;
}

/** Throws `denied` for a foreign host or page, `unauthenticated`, and `busy` after too many attempts. */
export type Admit = (request: {
  headers: Headers;
  authorization: string | null;
  arrival: Arrival;
  /** The required credential, if it is not a token. */
  needs?: "code";
}) => Promise<Admitted>;

/** Creates the admission that all entries share, so that invalid tokens are counted together. */
export function createAdmission(options: {
  authenticate: Authenticate;
  authenticateSandbox: AuthenticateSandbox;
  findCode: FindCode;
  names: StationNames;
}): Admit {
  const { authenticate, names } = options;
  const gate = createGate(options);
  return async ({ headers, authorization, arrival, needs }) => {
    checkOrigin({ headers, via: arrival.via, names });
    if (needs === "code" && arrival.via !== "inside") {
      const address = arrival.via === "port" ? arrival.address : "socket";
      const pending = await gate.admitCode({ headers, authorization, address });
      keepConnection(arrival);
      return { caller: { kind: "code", pending }, stillValid: undefined };
    }
    if (arrival.via === "socket") return { caller: { kind: "socket" }, stillValid: undefined };
    if (arrival.via === "inside" || hasSandboxToken(authorization)) {
      const admitted = await admitSandbox({ headers, authorization, arrival }, gate);
      keepConnection(arrival);
      return admitted;
    }
    const { secret, token } = await gate.admit({ authorization, address: arrival.address });
    keepConnection(arrival);
    return { caller: { kind: "token", token }, stillValid: async () => (await authenticate(secret)) !== null };
  };
}

/** Throws `busy` if the callers of this address have used up its share of connections. */
function keepConnection(arrival: Arrival): void {
  if (arrival.via !== "port" || (arrival.connection?.admit() ?? true)) return;
  throw new CaissonError("busy", "this address has too many open connections", {
    hint: `Close some of its streams, or try again in ${RETRY_AFTER_S} s.`,
    details: { retryAfterSeconds: RETRY_AFTER_S },
  });
}

/** A call from inside a sandbox must carry the token of that same sandbox. */
async function admitSandbox({ headers, authorization, arrival }: Parameters<Admit>[0], gate: Gate): Promise<Admitted> {
  const from = arrival.via === "inside" ? (headers.get("caisson-sandbox") ?? "nowhere") : null;
  const address = arrival.via === "port" ? arrival.address : `sandbox ${from}`;
  const { sandbox } = await gate.admitSandbox({ authorization, address });
  if (from !== null && from !== sandbox) throw new CaissonError("unauthenticated", "the token belongs to another sandbox");
  return { caller: { kind: "sandbox", sandbox }, stillValid: undefined };
}
