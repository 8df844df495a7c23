import type { Duplex, Transform } from "node:stream";
import { CaissonError } from "../../contract/error/error.ts";
import type { RequestHead, ResponseHead } from "./head.ts";
import type { HttpSyntaxError } from "./headers.ts";
import type { UpstreamPool } from "./pool.ts";

/** The outcome of one request, reported once when it has ended. */
export interface RequestOutcome {
  /** As received from the client. */
  request: RequestHead;
  /** The status of the answer that the client got, or null if it got none. */
  status: number | null;
  /** True if the upstream answered, false if the relay did. */
  forwarded: boolean;
  /** Why it failed, or null if the whole answer was sent. */
  error: Error | null;
  durationMs: number;
}

export interface RelayOptions {
  /**
   * Called for each request, in order, one at a time. An error is answered with 502, and with its text if it is a
   * `CaissonError`. A `RelayRefusal` is answered with its verdict.
   */
  decide: (head: RequestHead) => RelayVerdict | Promise<RelayVerdict>;
  /** Shared between relays. If absent, the connection has its own. */
  pool?: UpstreamPool;
  limits?: Partial<RelayLimits>;
  /** Counts the bytes of the client's connection as they pass, heads included: sent by the client, received by it. */
  onBytes?: (sent: number, received: number) => void;
  onRequest?: (outcome: RequestOutcome) => void;
  /**
   * Called when the client's input was refused before it became a request. The client got an error, and its connection
   * is being closed.
   */
  onBadRequest?: (error: HttpSyntaxError) => void;
  /**
   * The protocols that a connection may be upgraded to. Other upgrade requests are passed on without the Upgrade
   * header. `h2c` would hide requests from `decide`. Default: websocket.
   */
  upgrades?: readonly string[];
  /** Destroys the connections of the client and the upstream. */
  signal?: AbortSignal;
}

/** The relay answers the request. It drains the rest of the body up to a limit, and otherwise closes the connection. */
export interface AnswerVerdict {
  kind: "answer";
  status: number;
  reason?: string;
  /** The relay sets Content-Length and Connection. The default Content-Type is plain text. */
  headers?: readonly (readonly [string, string])[];
  body?: string;
  /** Closes the connection after this answer. */
  close?: boolean;
}

/**
 * For CONNECT and similar requests. The relay writes the answer and hands over the connection: from `take` on, the
 * receiver handles its bytes, errors and end.
 */
export interface TakeVerdict {
  kind: "take";
  /** Default: 200 Connection Established. If null, nothing is written. */
  answer?: { status: number; reason?: string; headers?: readonly (readonly [string, string])[] } | null;
  /**
   * `first` are the bytes after the head. The stream is paused: call `resume`, or pass it to `pump`. The client may
   * have disconnected already.
   */
  take: (client: Duplex, first: Buffer) => void;
}

export interface ForwardVerdict {
  kind: "forward";
  /**
   * Requests with the same key may share the kept-alive connections of the pool, so the key must contain everything
   * that distinguishes connections.
   */
  key: string;
  /**
   * Called if there is no idle connection for the key. A `RelayRefusal` is answered with its verdict. Any other error
   * is answered with 502, and with its text if it is a `CaissonError`.
   */
  connect: () => Promise<Duplex>;
  /**
   * The request to send upstream. Hop-by-hop headers are removed, and those about the body's length are replaced by the
   * original ones, because the body is passed on unchanged. With version 1.0 the connection is not kept alive.
   */
  request: RequestHead;
  /**
   * Receives each response head (including 1xx) and may change it. `body` changes the payload but not its length: a
   * function works chunk by chunk, a Transform on the whole payload. With a `body`, trailers are dropped. After a 101,
   * `body` receives the raw bytes from upstream. An error is answered with 502.
   */
  response?: (head: ResponseHead) => { head: ResponseHead; body?: BodyTransform };
}

export type BodyTransform = Transform | ((chunk: Buffer) => Buffer);
export type RelayVerdict = AnswerVerdict | TakeVerdict | ForwardVerdict;

/** Thrown by `connect` to answer the request with `verdict`. */
export class RelayRefusal extends CaissonError {
  readonly verdict: AnswerVerdict;

  constructor(verdict: AnswerVerdict) {
    super("denied", verdict.body ?? verdict.reason ?? `answered with ${verdict.status}`);
    this.verdict = verdict;
  }
}

export interface RelayLimits {
  /** The time from the first byte of a head to its end. A slower request gets a 408. */
  headMs: number;
  /** How long a request in progress may stay without a byte in either direction. */
  idleMs: number;
  /** The time between two requests of a client, and before its first. */
  keepAliveMs: number;
  /** The time for `connect`, after which the request gets a 504. */
  connectMs: number;
  /**
   * How long to wait for an answer after the client has ended its side: most such clients have disconnected, few have
   * only finished sending.
   */
  halfOpenMs: number;
  /** How long the client has to close after we did, and to send the rest of an unwanted body. */
  lingerMs: number;
  /**
   * How much of an unwanted body we read before we close the connection, and again while it closes, so that the answer
   * is not lost to a reset.
   */
  drainBytesMax: number;
  /** How long an upgraded connection may stay without a byte in either direction. */
  tunnelIdleMs: number;
  /**
   * A request that must not be repeated uses an idle connection only if the last use of that connection is this recent,
   * because the upstream may be about to close an older one.
   */
  freshMs: number;
}

export const relayLimits: RelayLimits = {
  headMs: 30_000,
  idleMs: 600_000,
  keepAliveMs: 120_000,
  connectMs: 30_000,
  halfOpenMs: 5_000,
  lingerMs: 30_000,
  drainBytesMax: 1_048_576,
  tunnelIdleMs: 7_200_000,
  freshMs: 2_000,
};
