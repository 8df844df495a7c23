import type { Duplex, Transform } from "node:stream";
import { CaissonError } from "../../contract/error.ts";
import type { RequestHead, ResponseHead } from "./head.ts";
import type { HttpSyntaxError } from "./headers.ts";
import type { UpstreamPool } from "./pool.ts";

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
  /**
   * Asked for each request on its own, in order, one at a time. A throw is answered with 502 and its text
   * (`RelayRefusal`: as it says).
   */
  decide: (head: RequestHead) => Verdict | Promise<Verdict>;
  /** Shared between relays; without one, the connection has its own. */
  pool?: UpstreamPool;
  limits?: Partial<RelayLimits>;
  /** Bytes of the client's connection, heads included, as they pass: sent by the client, received by it. */
  onBytes?: (sent: number, received: number) => void;
  onRequest?: (outcome: RequestOutcome) => void;
  /**
   * What the client sent was refused before it was a request to decide on. It was told, and its connection is being
   * closed.
   */
  onBadRequest?: (error: HttpSyntaxError) => void;
  /**
   * The protocols a connection may be upgraded to; a request for another is passed on without the wish. `h2c` would
   * hide requests from `decide`. Default: websocket.
   */
  upgrades?: readonly string[];
  /** Destroys the client's connection and the upstream's. */
  signal?: AbortSignal;
}

/** The request is answered here. What is left of its body is drained within a bound, else the connection is closed. */
export interface AnswerVerdict {
  kind: "answer";
  status: number;
  reason?: string;
  /** Content-Length and Connection are set by the relay; the Content-Type is plain text unless given. */
  headers?: readonly (readonly [string, string])[];
  body?: string;
  /** Closes the connection after this answer. */
  close?: boolean;
}

/**
 * CONNECT and the like. The relay writes the answer, then lets go of the connection: from `take` on its bytes, errors
 * and end are the taker's.
 */
export interface TakeVerdict {
  kind: "take";
  /** Default: 200 Connection Established. Null: nothing is written. */
  answer?: { status: number; reason?: string; headers?: readonly (readonly [string, string])[] } | null;
  /**
   * `first` are bytes that came after the head. The stream is paused: `resume` it, or give it to `pump`. The client may
   * be gone already.
   */
  take: (client: Duplex, first: Buffer) => void;
}

export interface ForwardVerdict {
  kind: "forward";
  /**
   * Requests with the same key may use each other's kept-alive connections of this pool: put in it whatever makes a
   * connection a different one.
   */
  key: string;
  /**
   * Called when no idle connection of that key is there. May throw `RelayRefusal` (answered as it says) or any other
   * error, which is answered with 502 and its text.
   */
  connect: () => Promise<Duplex>;
  /**
   * What is sent upstream. Headers that are for one hop only are removed, and those about the body's length are
   * replaced by those of the request that came in, because the body is passed as it is. With version 1.0 the connection
   * is not kept.
   */
  request: RequestHead;
  /**
   * Sees each head that comes back (1xx, too) and may change it. `body` changes the payload without changing its
   * length: a function chunk by chunk, a Transform over all of it; the trailers are dropped then. After a 101 it is
   * given the raw bytes from upstream. A throw is answered with 502.
   */
  response?: (head: ResponseHead) => { head: ResponseHead; body?: BodyTransform };
}

export type BodyTransform = Transform | ((chunk: Buffer) => Buffer);
export type Verdict = AnswerVerdict | TakeVerdict | ForwardVerdict;

/** Thrown by `connect`: the request is answered as `verdict` says. */
export class RelayRefusal extends CaissonError {
  readonly verdict: AnswerVerdict;

  constructor(verdict: AnswerVerdict) {
    super("denied", verdict.body ?? verdict.reason ?? `answered with ${verdict.status}`);
    this.verdict = verdict;
  }
}

export interface RelayLimits {
  /** From the first byte of a head to its end; past it a request is answered with 408. */
  headMs: number;
  /** Without a byte in either direction while a request is under way. */
  idleMs: number;
  /** Between two requests of a client, and before its first. */
  keepAliveMs: number;
  /** For `connect`; past it the request is answered with 504. */
  connectMs: number;
  /**
   * How long an answer is waited for after the client has ended its side: most have gone away, few have only ended
   * sending.
   */
  halfOpenMs: number;
  /** How long the client has to close after we did, and to send the rest of a body nobody wants. */
  lingerMs: number;
  /**
   * How much of a body nobody wants is read before the connection is closed; and once more while it closes, so that the
   * answer is not lost to a reset.
   */
  drainBytesMax: number;
  /** Without a byte in either direction after an upgrade. */
  tunnelIdleMs: number;
  /**
   * A request that must not be sent twice takes an idle connection only if it was used this recently: the other side
   * may be about to close it.
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
