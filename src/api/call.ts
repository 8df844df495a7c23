import type { RouteName } from "../contract/api/paths.ts";
import type { Body, EventData, Json, Params, Query } from "../contract/api/routes.ts";
import type { SandboxId } from "../contract/ids.ts";
import type { Scope, TokenView } from "../contract/token-verbs.ts";
import type { Station } from "../station/station.ts";
import type { Conditions } from "./conditions.ts";
import type { PendingCode } from "./sign-in-codes.ts";

/** Who makes a call: whoever can open the station's socket is the user whose file it is; all others have a token. */
export type Caller =
  | { kind: "socket" }
  | { kind: "token"; token: TokenView }
  | { kind: "sandbox"; sandbox: SandboxId }
  /** A browser that is about to sign in; only routes with the scope `code` let it in. */
  | { kind: "code"; pending: PendingCode };

/** A call that was checked: the caller may make it, and everything in it has the shape that its route names. */
export interface Call<Name extends RouteName> {
  readonly params: Params<Name>;
  readonly query: Query<Name>;
  readonly body: Body<Name>;
  /** As this caller may see it: what is somebody else's is not there. */
  readonly station: Station;
  /** To whom the caller belongs, and what it makes. */
  readonly owner: string;
  /** The sandbox that the caller is in, where it came with that one's token. */
  readonly sandbox: SandboxId | null;
  /** What the caller may do; null for one in a sandbox. */
  readonly scope: Scope | null;
  readonly caller: Caller;
  /** As a log of events shall name the caller. */
  readonly by: string;
  /** Of a route that has events and something else; `json` stands for that. */
  readonly wants: "json" | "events";
  readonly conditions: Conditions;
  /** Where an earlier stream of the same route broke off. */
  readonly lastEventId: string | null;
  /** Of what the call starts, in traces. */
  readonly traceparent: string | null;
  /** Aborted when the caller has gone away or may do this no longer, and when the station ends. */
  readonly signal: AbortSignal;
}

export interface SentEvent<Data> {
  /** What the caller may send back as `Last-Event-ID`; absent where nothing can be taken up again. */
  id?: number;
  type: string;
  data: Data;
}

/** A stream ends with its last item; `release` is called once then, also when nobody reads it to its end, or at all. */
type Streamed = { release?: () => Promise<void> };
export type Reply<Name extends RouteName> =
  | { json: Json<Name> }
  | ({ events: AsyncIterable<SentEvent<EventData<Name>>> } & Streamed)
  | ({ bytes: AsyncIterable<Uint8Array>; sizeBytes?: number; etag?: string; part?: { offset: number; wholeBytes: number } } & Streamed)
  | { unchanged: { etag: string } }
  | { nothing: true };

/** For each route, the verb of the station that it calls. */
export type Handlers<Names extends RouteName = RouteName> = { [Name in Names]: (call: Call<Name>) => Promise<Reply<Name>> };

export const nothing = { nothing: true } as const;

/** Whose share a call counts against. */
export function keyOfCaller(caller: Caller): string {
  if (caller.kind === "token") return `owner ${caller.token.owner}`;
  return caller.kind === "sandbox" ? `inside ${caller.sandbox}` : "socket";
}
