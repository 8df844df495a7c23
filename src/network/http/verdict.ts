import type { Duplex, Transform } from "node:stream";
import { CaissonError } from "../../contract/error.ts";
import type { RequestHead, ResponseHead } from "./head.ts";

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

/** CONNECT and the like. The relay writes the answer, then lets go of the connection: from `take` on its bytes, errors and end are the taker's. */
export interface TakeVerdict {
  kind: "take";
  /** Default: 200 Connection Established. Null: nothing is written. */
  answer?: { status: number; reason?: string; headers?: readonly (readonly [string, string])[] } | null;
  /** `first` are bytes that came after the head. The stream is paused: `resume` it, or give it to `pump`. The client may be gone already. */
  take: (client: Duplex, first: Buffer) => void;
}

export interface ForwardVerdict {
  kind: "forward";
  /** Requests with the same key may use each other's kept-alive connections of this pool: put in it whatever makes a connection a different one. */
  key: string;
  /** Called when no idle connection of that key is there. May throw `RelayRefusal` (answered as it says) or any other error, which is answered with 502 and its text. */
  connect: () => Promise<Duplex>;
  /**
   * What is sent upstream. Headers that are for one hop only are removed, and those about the body's length are replaced by those of the request that came in,
   * because the body is passed as it is. With version 1.0 the connection is not kept.
   */
  request: RequestHead;
  /**
   * Sees each head that comes back (1xx, too) and may change it. `body` changes the payload without changing its length: a function chunk by chunk, a Transform over all of it; the
   * trailers are dropped then. After a 101 it is given the raw bytes from upstream. A throw is answered with 502.
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
