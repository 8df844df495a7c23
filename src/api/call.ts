import type { SandboxId } from "../contract/ids.ts";
import type { Scope, TokenView } from "../contract/token/token-verbs.ts";
import type { Body, EventData, Json, Params, Query, RouteName } from "../verbs/routes.ts";
import type { Station } from "../verbs/station.ts";
import type { Conditions } from "./conditions.ts";
import type { PendingCode } from "./sign-in-codes.ts";

/** The caller. A process that can open the station's socket acts for the user who owns it; all others have a token. */
export type Caller =
  | { kind: "socket" }
  | { kind: "token"; token: TokenView }
  | { kind: "sandbox"; sandbox: SandboxId }
  /** A browser that is signing in. Only routes with the scope `code` accept it. */
  | { kind: "code"; pending: PendingCode };

/** A checked call: the caller may make it, and its input has the shape that the route declares. */
export interface Call<Name extends RouteName> {
  readonly params: Params<Name>;
  readonly query: Query<Name>;
  readonly body: Body<Name>;
  /** The station as this caller sees it: other owners' resources do not exist in it. */
  readonly station: Station;
  /** The owner of the caller, and of what it creates. */
  readonly owner: string;
  /** The sandbox that the caller is in, if it came with that sandbox's token. */
  readonly sandbox: SandboxId | null;
  /** The caller's scope; null for a caller inside a sandbox. */
  readonly scope: Scope | null;
  readonly caller: Caller;
  /** The caller's name in event logs. */
  readonly by: string;
  /** What the caller wants if the route offers both JSON and events. `json` also stands for a byte stream. */
  readonly wants: "json" | "events";
  readonly conditions: Conditions;
  /** Where an earlier stream of the same route broke off. */
  readonly lastEventId: string | null;
  /** The trace context of what the call starts. */
  readonly traceparent: string | null;
  /** Aborted when the caller disconnects or loses the right to this call, and when the station ends. */
  readonly signal: AbortSignal;
}

export interface SentEvent<Data> {
  /** The value for `Last-Event-ID`. Absent if the stream cannot be resumed. */
  id?: number;
  type: string;
  data: Data;
}

/** A stream ends with its last item. Then `release` is called once, even if no client read the stream. */
type Streamed = { release?: () => Promise<void> };
export type Reply<Name extends RouteName> =
  | { json: Json<Name> }
  | ({ events: AsyncIterable<SentEvent<EventData<Name>>> } & Streamed)
  | ({ bytes: AsyncIterable<Uint8Array>; sizeBytes?: number; etag?: string; part?: { offset: number; wholeBytes: number } } & Streamed)
  | { unchanged: { etag: string } }
  | { nothing: true };

/** The handler of each route, which calls a verb of the station. */
export type Handlers<Names extends RouteName = RouteName> = { [Name in Names]: (call: Call<Name>) => Promise<Reply<Name>> };

export const nothing = { nothing: true } as const;

/** Returns the key of the share that a call counts against. */
export function keyOfCaller(caller: Caller): string {
  if (caller.kind === "token") return `owner ${caller.token.owner}`;
  return caller.kind === "sandbox" ? `inside ${caller.sandbox}` : "socket";
}
