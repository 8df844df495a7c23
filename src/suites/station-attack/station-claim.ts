import type { ClaimGroup, NotTried } from "../attack/claim.ts";
import type { Target } from "./ask.ts";

/** A station that was started to be attacked, with its own state folder and no other users. */
export interface AttackedStation {
  /** Its address on the loopback interface. */
  url: string;
  stateDir: string;
  /** The name of a secret in its configuration, which is reserved for the machine's user. */
  operatorSecret: string;
  /** The value of that secret. */
  operatorValue: string;
  token(options: { scope: "read" | "run" | "admin"; owner: string }): Promise<{ id: string; token: string }>;
  revoke(id: string): Promise<void>;
  /** Creates a code that signs in a browser. */
  code(): Promise<{ code: string; expiresAt: string }>;
  /** Returns the names of all tokens. */
  tokenNames(): Promise<string[]>;
  /** Requests the status of a station at another address with our own client. */
  askStatus(url: string, token: string): Promise<unknown>;
}

export interface StationContext extends Target {
  station: AttackedStation;
  /** `run` tokens of two owners. */
  ada: string;
  bob: string;
  /** An unused sign-in code, created when the suite started. */
  oldCode: { code: string; expiresAt: string };
  within<T>(what: string, promise: Promise<T>, ms?: number): Promise<T>;
}

/** A claim about what no caller can do to a station. */
export interface StationClaim<Seen = unknown> {
  id: string;
  title: string;
  group: ClaimGroup;
  /** The attempted attack, as a sentence. */
  tried: string;
  /** Tries the attack, with limited counts and times, only against addresses on this machine. */
  observe(context: StationContext): Promise<Seen | NotTried>;
  /** Returns what in the observation breaks the claim, as phrases. Empty if the claim holds. */
  judge(seen: Seen): string[];
  /** Describes the observation for readers. Absent: as JSON. */
  describe?(seen: Seen): string;
}

/** Ties the types of `observe` and `judge` together. */
export function defineStationClaim<Seen>(claim: StationClaim<Seen>): StationClaim {
  return claim as StationClaim;
}
