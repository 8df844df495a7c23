import type { Duplex } from "node:stream";
import { ClientConnection } from "./client-connection.ts";
import type { RequestHead } from "./head.ts";
import type { HttpSyntaxError } from "./http-syntax-error.ts";
import type { UpstreamPool } from "./pool.ts";
import type { RelayLimits } from "./relay-limits.ts";
import type { Verdict } from "./verdict.ts";

export type { RelayLimits } from "./relay-limits.ts";
export { type AnswerVerdict, type BodyTransform, type ForwardVerdict, RelayRefusal, type Verdict } from "./verdict.ts";

/** What became of one request; told once, when it is over. */
export interface RequestOutcome {
  /** As it came from the client. */
  request: RequestHead;
  /** Of the answer the client got; null when it got none. */
  status: number | null;
  /** Whether it was answered by the upstream (true) or here. */
  forwarded: boolean;
  /** Why it failed; null when the answer went out whole. */
  error: Error | null;
  durationMs: number;
}

export interface RelayOptions {
  /** Asked for each request on its own, in order, one at a time. A throw is answered with 502 and its text (`RelayRefusal`: as it says). */
  decide: (head: RequestHead) => Verdict | Promise<Verdict>;
  /** Shared between relays; without one, the connection has its own. */
  pool?: UpstreamPool;
  limits?: Partial<RelayLimits>;
  /** Bytes of the client's connection, heads included, as they pass: sent by the client, received by it. */
  onBytes?: (sent: number, received: number) => void;
  onRequest?: (outcome: RequestOutcome) => void;
  /** What the client sent was refused before it was a request to decide on. It was told, and its connection is being closed. */
  onBadRequest?: (error: HttpSyntaxError) => void;
  /** The protocols a connection may be upgraded to; a request for another is passed on without the wish. `h2c` would hide requests from `decide`. Default: websocket. */
  upgrades?: readonly string[];
  /** Destroys the client's connection and the upstream's. */
  signal?: AbortSignal;
}

/** Serves one client connection, however many requests it sends. Resolves when the connection is over; never rejects. `first` are bytes already read from it. */
export function relayHttp(client: Duplex, options: RelayOptions, first?: Buffer): Promise<void> {
  return new Promise((resolve) => {
    new ClientConnection(client, options, resolve).start(first);
  });
}
