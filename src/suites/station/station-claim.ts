import type { ClaimGroup, NotTried } from "../attack/claim.ts";
import type { Target } from "./ask.ts";

/** A station that was started to be attacked, with its own state folder and no other user. */
export interface AttackedStation {
  /** Its address on the loopback interface. */
  url: string;
  stateDir: string;
  /** The name of a secret that its configuration keeps for the machine's user. */
  operatorSecret: string;
  /** The value of that secret. */
  operatorValue: string;
  token(options: { scope: "read" | "run" | "admin"; owner: string }): Promise<{ id: string; token: string }>;
  revoke(id: string): Promise<void>;
  /** A code that signs a browser in, and when it expires. */
  code(): Promise<{ code: string; expiresAt: string }>;
  /** The names of all tokens. */
  tokenNames(): Promise<string[]>;
  /** What our own client says of a station at another address. */
  askStatus(url: string, token: string): Promise<unknown>;
}

export interface StationContext extends Target {
  station: AttackedStation;
  /** Tokens with the scope `run`, of two owners. */
  ada: string;
  bob: string;
  /** An unused sign-in code, registered when the suite began. */
  oldCode: { code: string; expiresAt: string };
  within<T>(what: string, promise: Promise<T>, ms?: number): Promise<T>;
}

/** What no caller may do to a station. */
export interface StationClaim<Seen = unknown> {
  id: string;
  title: string;
  group: ClaimGroup;
  /** What was done, as a sentence. */
  tried: string;
  /** Tries it, with bounded counts and times, against addresses of this machine alone. */
  observe(context: StationContext): Promise<Seen | NotTried>;
  /** What of the observation breaks the claim, each as a phrase; nothing: it holds. */
  judge(seen: Seen): string[];
  /** The observation for people; by default as JSON. */
  describe?(seen: Seen): string;
}

/** Keeps the type of an observation together between `observe` and `judge`. */
export function defineStationClaim<Seen>(claim: StationClaim<Seen>): StationClaim {
  return claim as StationClaim;
}
