import type { Duplex } from "node:stream";
import { CaissonError } from "../../contract/error/error.ts";
import { Answer, type AnswerHost } from "./answer.ts";
import type { BodyScanner } from "./body.ts";
import type { ClientStream } from "./client-stream.ts";
import { requestHeadText } from "./head.ts";
import { HttpSyntaxError } from "./headers.ts";
import type { IncomingRequest } from "./hop-by-hop.ts";
import { headersUpstream } from "./hop-by-hop.ts";
import type { UpstreamPool } from "./pool.ts";
import type { BodyTransform, ForwardVerdict, RelayLimits } from "./relay-options.ts";
import { Upstream, type UpstreamUser } from "./upstream.ts";
import { NOTHING, writeMessage } from "./write-message.ts";

/** A connection that has switched to another protocol. */
export interface Switched {
  upstream: Duplex;
  /** The bytes from upstream after the head. */
  received: Buffer;
  transform: BodyTransform | undefined;
  status: number;
}

/** The client's side of an exchange. */
export interface ExchangeHost {
  readonly stream: ClientStream;
  readonly limits: RelayLimits;
  readonly pool: UpstreamPool;
  /** Tracks the body of the request. */
  readonly requestBody: BodyScanner;
  /** Whether the client has ended its side and this is its last request. */
  readonly isLast: boolean;
  /** Notes that bytes have passed. */
  touch(): void;
  exchangeEnded(outcome: { status: number; close: boolean }): void;
  /** Called if there is no answer to pass on, and nothing was sent to the client. */
  exchangeFailed(error: unknown, status: number): void;
  /** Called if the answer broke off in the middle. */
  exchangeBroke(error: unknown, status: number): void;
  /** Called if the body of the request is malformed, before anything of an answer was sent. */
  requestBroke(error: HttpSyntaxError): void;
  becomeTunnel(switched: Switched): void;
}

const idempotent = new Set(["GET", "HEAD", "OPTIONS", "PUT", "DELETE", "TRACE"]);

/** One request on its way to an upstream, and its answer. */
export class Exchange implements UpstreamUser, AnswerHost {
  readonly client: ClientStream;
  readonly request: IncomingRequest;
  readonly verdict: ForwardVerdict;
  readonly upgrade: string | null;
  readonly #host: ExchangeHost;
  readonly #answer: Answer;
  #phase: "connecting" | "sent" | "over" = "connecting";
  #connectingSinceMs = 0;
  #upstream: Upstream | null = null;
  #headText = "";
  #reused = false;
  #retried = false;
  #bodySent = false;
  #anyByte = false;

  constructor(host: ExchangeHost, request: IncomingRequest, options: { verdict: ForwardVerdict; upgrades: readonly string[] }) {
    this.client = host.stream;
    this.request = request;
    this.verdict = options.verdict;
    const { upgrade } = request.wishes;
    const mayUpgrade = upgrade !== null && request.head.version === "1.1" && request.framing.kind === "none";
    this.upgrade = mayUpgrade && options.upgrades.includes(upgrade) ? upgrade : null;
    this.#host = host;
    this.#answer = new Answer(this);
  }

  /** Whether bytes of the client belong to this request and can be accepted now. */
  get wantsBody(): boolean {
    return this.#phase === "sent" && !this.#host.requestBody.done;
  }

  start(): void {
    const { request, key } = this.verdict;
    try {
      const { framing, wishes } = this.request;
      const headers = headersUpstream(request.headers, { framing, named: wishes.named, upgrade: this.upgrade, version: request.version });
      this.#headText = requestHeadText({ method: request.method, target: request.target, version: request.version, headers });
    } catch (error) {
      this.#fail(error, 502);
      return;
    }
    const upstream = this.#host.pool.take(key, this.#mayRepeat ? Number.POSITIVE_INFINITY : this.#host.limits.freshMs);
    if (upstream === null) this.#connect();
    else {
      this.#reused = true;
      this.#send(upstream);
    }
  }

  onRequestData(chunk: Buffer): void {
    const end = this.#scanRequest(chunk);
    if (end <= 0) return;
    this.#bodySent = true;
    if (end < chunk.length) this.client.hold(chunk.subarray(end));
    if (this.#upstream?.stream.write(end === chunk.length ? chunk : chunk.subarray(0, end)) === false) this.client.pause();
  }

  onClientDrain(): void {
    if (this.#phase === "sent") this.#answer.clientDrained();
  }

  onTick(nowMs: number, quietMs: number): void {
    const { connectMs, idleMs } = this.#host.limits;
    if (this.#phase === "connecting" && nowMs - this.#connectingSinceMs > connectMs) {
      this.#fail(new CaissonError("timeout", "connecting to the upstream took too long"), 504);
    } else if (quietMs > idleMs) this.#fail(new CaissonError("timeout", "the upstream did not answer in time"), 504);
  }

  /** Closes the upstream connection, because the client has disconnected or the answer failed. */
  abort(): void {
    this.#phase = "over";
    this.#upstream?.destroy();
    this.#answer.destroy();
  }

  onUpstreamData(chunk: Buffer): void {
    this.#anyByte = true;
    this.#host.touch();
    try {
      this.#answer.push(chunk);
    } catch (error) {
      this.#fail(error, 502);
    }
  }

  onUpstreamEnd(): void {
    if (!this.#answer.end()) this.#onLost();
  }

  onUpstreamClose(): void {
    if (!this.#answer.received) this.#onLost();
  }

  onUpstreamDrain(): void {
    this.#host.touch();
    if (this.wantsBody) this.client.resume();
  }

  closesClient(): boolean {
    if (this.#host.isLast) return true;
    // The client may send the body or omit it, so we could not tell where its next request begins.
    return this.request.wishes.expectContinue && !this.#bodySent && !this.#host.requestBody.done;
  }

  pauseUpstream(): void {
    this.#upstream?.stream.pause();
  }

  resumeUpstream(): void {
    if (this.#phase === "sent") this.#upstream?.stream.resume();
  }

  onAnswered(): void {
    if (this.#phase === "over") return;
    this.#phase = "over";
    const upstream = this.#upstream as Upstream;
    const { status, closesClient, keepsUpstream, serverKeepsMs } = this.#answer;
    if (keepsUpstream && this.#host.requestBody.done && upstream.stream.writableLength === 0) {
      if (upstream.stream.isPaused()) upstream.stream.resume();
      this.#host.pool.put(upstream, serverKeepsMs);
    } else upstream.destroy();
    this.#host.exchangeEnded({ status, close: closesClient });
  }

  onSwitched(received: Buffer, transform: BodyTransform | undefined): void {
    this.#phase = "over";
    const upstream = (this.#upstream as Upstream).release();
    this.#host.becomeTunnel({ upstream, received, transform, status: this.#answer.status });
  }

  onAnswerError(error: Error): void {
    this.#fail(error, 502);
  }

  /** Whether repeating the request does no harm. */
  get #mayRepeat(): boolean {
    return this.request.framing.kind === "none" && idempotent.has(this.verdict.request.method);
  }

  #connect(): void {
    this.#phase = "connecting";
    this.#connectingSinceMs = performance.now();
    let connecting: Promise<Duplex>;
    try {
      connecting = this.verdict.connect();
    } catch (error) {
      this.#fail(error, 502);
      return;
    }
    connecting.then(
      (stream) => {
        const upstream = new Upstream(stream, this.verdict.key);
        if (this.#phase === "connecting") this.#send(upstream);
        else upstream.destroy();
      },
      (error) => this.#fail(error, 502),
    );
  }

  #send(upstream: Upstream): void {
    upstream.user = this;
    this.#upstream = upstream;
    this.#phase = "sent";
    const host = this.#host;
    let body = NOTHING;
    if (!host.requestBody.done) {
      const held = this.client.takeHeld();
      const end = held.length === 0 ? 0 : this.#scanRequest(held);
      if (end === -1) return;
      body = held.subarray(0, end);
      this.#bodySent ||= end > 0;
      if (end < held.length) this.client.hold(held.subarray(end));
    }
    const more = writeMessage(upstream.stream, this.#headText, body);
    if (more && !host.requestBody.done) this.client.resume();
  }

  /** Returns where the body ends in these bytes, or -1 if they are malformed, which ends the exchange. */
  #scanRequest(chunk: Buffer): number {
    try {
      return this.#host.requestBody.scan(chunk, 0);
    } catch (error) {
      if (!(error instanceof HttpSyntaxError) || this.#answer.status !== 0) this.#fail(error, 500);
      else {
        this.abort();
        this.#host.requestBroke(error);
      }
      return -1;
    }
  }

  /** Handles an upstream that closed or broke before its answer was complete. */
  #onLost(): void {
    if (this.#phase !== "sent") return;
    const upstream = this.#upstream as Upstream;
    const unseen = this.request.framing.kind === "none" ? this.#mayRepeat : !this.#bodySent;
    if (this.#reused && !this.#retried && !this.#anyByte && unseen) {
      // The connection was idle, and closed just as the request was sent.
      this.#retried = true;
      this.#upstream = null;
      upstream.destroy();
      this.#connect();
      return;
    }
    const when = this.#anyByte ? "in the middle of its answer" : "without an answer";
    this.#fail(new CaissonError("lost", `the upstream closed the connection ${when}`, { cause: upstream.error }), 502);
  }

  #fail(error: unknown, status: number): void {
    if (this.#phase === "over") return;
    this.abort();
    if (this.#answer.status === 0) this.#host.exchangeFailed(error, status);
    else this.#host.exchangeBroke(error, this.#answer.status);
  }
}
