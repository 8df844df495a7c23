import type { Duplex } from "node:stream";
import { CaissonError } from "../../contract/error/error.ts";
import { BodyScanner, requestFraming } from "./body.ts";
import { type ClientEvents, ClientStream } from "./client-stream.ts";
import { Exchange, type ExchangeHost, type Switched } from "./exchange.ts";
import { parseRequestHead, type RequestHead } from "./head.ts";
import { HeadReader } from "./head-reader.ts";
import type { HttpSyntaxError } from "./headers.ts";
import { connectionWishes, type IncomingRequest, isPersistent } from "./hop-by-hop.ts";
import { asError, localAnswer, requestTimeout, tunnelAnswer, verdictOfError } from "./local-answer.ts";
import { PhaseClock, tickMsOf } from "./phase-clock.ts";
import { UpstreamPool } from "./pool.ts";
import { pump } from "./pump.ts";
import {
  type AnswerVerdict,
  type RelayLimits,
  type RelayOptions,
  type RelayVerdict,
  relayLimits,
  type TakeVerdict,
} from "./relay-options.ts";
import { resetStream } from "./reset-stream.ts";
import { NOTHING } from "./write-message.ts";

const websocketOnly = ["websocket"] as const;

/**
 * Serves one client connection with any number of requests. Resolves when the connection has closed; never rejects.
 * `first` are bytes already read from it.
 */
export function relayHttp(client: Duplex, options: RelayOptions, first?: Buffer): Promise<void> {
  return new Promise((resolve) => {
    new ClientConnection(client, options, resolve).start(first);
  });
}

/** One client and its requests, in sequence. */
class ClientConnection implements ExchangeHost, ClientEvents {
  readonly stream: ClientStream;
  readonly limits: RelayLimits;
  readonly pool: UpstreamPool;
  readonly requestBody = new BodyScanner();
  readonly #options: RelayOptions;
  readonly #resolve: () => void;
  readonly #reader = new HeadReader({ emptyLineBefore: true });
  readonly #onAbort = () => void this.stream.duplex.destroy();
  readonly #clock = new PhaseClock();
  #unwantedBytes = 0;
  #advancing = false;
  #request: IncomingRequest | null = null;
  #exchange: Exchange | null = null;
  #timer: NodeJS.Timeout | null = null;

  constructor(client: Duplex, options: RelayOptions, resolve: () => void) {
    this.#options = options;
    this.#resolve = resolve;
    this.stream = new ClientStream(client, this, options.onBytes);
    this.limits = { ...relayLimits, ...options.limits };
    this.pool = options.pool ?? new UpstreamPool();
  }

  start(first: Buffer | undefined): void {
    const { duplex } = this.stream;
    const { signal } = this.#options;
    duplex.on("error", () => {});
    if (duplex.closed) {
      this.#onClose();
      return;
    }
    duplex.once("close", () => this.#onClose());
    if (signal?.aborted) duplex.destroy();
    if (duplex.destroyed) return;
    signal?.addEventListener("abort", this.#onAbort, { once: true });
    this.#timer = setInterval(() => this.#onTick(performance.now()), tickMsOf(this.limits)).unref();
    this.#clock.enter("head");
    this.stream.listen(first);
  }

  get isLast(): boolean {
    return this.stream.endedMs !== null && !this.stream.holdsBytes;
  }

  touch(): void {
    this.#clock.touch();
  }

  onData(chunk: Buffer): void {
    if (this.#clock.phase === "lingering") {
      this.#unwantedBytes += chunk.length;
      if (this.#unwantedBytes > this.limits.drainBytesMax) this.stream.duplex.destroy();
      return;
    }
    if (this.#clock.phase === "draining") {
      this.#drain(chunk);
      return;
    }
    this.touch();
    if (this.#exchange?.wantsBody) this.#exchange.onRequestData(chunk);
    else {
      this.stream.hold(chunk);
      if (this.#clock.phase === "head" && !this.stream.duplex.writableNeedDrain) this.#advance();
      else this.stream.pause();
    }
  }

  onEnd(): void {
    if (this.#exchange?.wantsBody) resetStream(this.stream.duplex);
    else if (this.#clock.phase === "draining" || (this.#clock.phase === "head" && !this.stream.holdsBytes)) this.#finish();
  }

  onDrain(): void {
    this.touch();
    if (this.#exchange !== null) this.#exchange.onClientDrain();
    else if (this.#clock.phase === "head") this.#advance();
  }

  exchangeEnded({ status, close }: { status: number; close: boolean }): void {
    this.#report({ status, forwarded: true, error: null });
    this.#afterAnswer(close);
  }

  exchangeFailed(error: unknown, status: number): void {
    this.#answer(verdictOfError(error, status), asError(error));
  }

  exchangeBroke(error: unknown, status: number): void {
    this.#report({ status, forwarded: true, error: asError(error) });
    resetStream(this.stream.duplex);
  }

  requestBroke(error: HttpSyntaxError): void {
    this.#refuse(error);
  }

  becomeTunnel({ upstream, received, transform, status }: Switched): void {
    const first = this.#detach();
    const { onBytes, signal } = this.#options;
    void pump(this.stream.duplex, upstream, {
      first,
      firstBack: received,
      idleMs: this.limits.tunnelIdleMs,
      ...(onBytes === undefined ? {} : { onBytes }),
      ...(signal === undefined ? {} : { signal }),
      ...(transform === undefined ? {} : { transformBack: transform }),
    }).then(({ error }) => this.#report({ status, forwarded: true, error }));
  }

  #onClose(): void {
    if (this.#timer !== null) clearInterval(this.#timer);
    this.#options.signal?.removeEventListener("abort", this.#onAbort);
    if (this.#clock.phase !== "handedOver") {
      this.#exchange?.abort();
      this.#report({ status: null, forwarded: false, error: new CaissonError("gone", "the client disconnected") });
    }
    this.#clock.phase = "over";
    if (this.#options.pool === undefined) this.pool.close();
    this.#resolve();
  }

  /** Processes one request after another, as long as each is answered at once and the client reads its answers. */
  #advance(): void {
    if (this.#advancing) return;
    this.#advancing = true;
    const { stream } = this;
    while (this.#clock.phase === "head" && stream.holdsBytes && !stream.duplex.writableNeedDrain) this.#onHeadBytes(stream.takeHeld());
    this.#advancing = false;
    if (this.#clock.phase !== "head" || stream.holdsBytes) return;
    if (stream.endedMs === null) stream.resume();
    else this.#finish();
  }

  #onHeadBytes(bytes: Buffer): void {
    let head: RequestHead;
    try {
      const found = this.#reader.push(bytes);
      this.#clock.headSinceMs = this.#reader.begun ? (this.#clock.headSinceMs ?? this.#clock.touchedMs) : null;
      if (found === null) return;
      this.stream.hold(this.#reader.rest);
      head = parseRequestHead(found);
    } catch (error) {
      this.#refuse(error as HttpSyntaxError);
      return;
    }
    const framing = requestFraming(head);
    this.#request = { head, framing, wishes: connectionWishes(head), startedMs: this.#clock.touchedMs };
    this.requestBody.start(framing);
    this.#clock.phase = "deciding";
    this.#decide(head);
  }

  #decide(head: RequestHead): void {
    try {
      const verdict = this.#options.decide(head);
      if (!(verdict instanceof Promise)) this.#apply(verdict);
      else verdict.then((decided) => this.#apply(decided)).catch((error) => this.#onDecideError(error));
    } catch (error) {
      this.#onDecideError(error);
    }
  }

  #onDecideError(error: unknown): void {
    if (this.#clock.phase === "deciding") this.exchangeFailed(error, 502);
    else if (this.#clock.phase !== "over") resetStream(this.stream.duplex);
  }

  #apply(verdict: RelayVerdict): void {
    // The receiver may hold resources for the connection. It learns from the stream that the client has disconnected.
    if (verdict.kind === "take") this.#handOver(verdict);
    else if (this.#clock.phase !== "deciding") return;
    else if (verdict.kind === "answer") this.#answer(verdict, null);
    else {
      this.#clock.phase = "exchange";
      const options = { verdict, upgrades: this.#options.upgrades ?? websocketOnly };
      this.#exchange = new Exchange(this, this.#request as IncomingRequest, options);
      this.#exchange.start();
    }
  }

  #answer(verdict: AnswerVerdict, error: Error | null): void {
    const { head, wishes } = this.#request as IncomingRequest;
    const unclear = wishes.expectContinue && !this.requestBody.done;
    const close = verdict.close === true || unclear || this.isLast || !isPersistent(head, wishes);
    this.stream.write(localAnswer(verdict, { head, close }));
    this.#report({ status: verdict.status, forwarded: false, error });
    this.#afterAnswer(close);
  }

  #refuse(error: HttpSyntaxError): void {
    this.#request = null;
    this.#options.onBadRequest?.(error);
    const verdict: AnswerVerdict = { kind: "answer", status: error.status, body: `Bad request: ${error.message}.\n` };
    this.stream.write(localAnswer(verdict, { head: null, close: true }));
    this.#finish();
  }

  #handOver(verdict: TakeVerdict): void {
    if (this.#clock.phase !== "deciding") {
      verdict.take(this.stream.duplex, NOTHING);
      return;
    }
    if (verdict.answer !== null) this.stream.write(tunnelAnswer(verdict.answer));
    const first = this.#detach();
    this.#report({ status: verdict.answer?.status ?? 200, forwarded: false, error: null });
    verdict.take(this.stream.duplex, first);
  }

  #afterAnswer(close: boolean): void {
    this.#exchange = null;
    if (close) this.#finish();
    else if (this.requestBody.done) this.#next();
    else {
      this.#clock.enter("draining");
      this.#unwantedBytes = 0;
      this.#drain(this.stream.takeHeld());
      this.stream.resume();
    }
  }

  #next(): void {
    this.#clock.enter("head");
    this.#advance();
  }

  #drain(chunk: Buffer): void {
    this.#unwantedBytes += chunk.length;
    try {
      this.stream.hold(chunk.subarray(this.requestBody.scan(chunk, 0)));
    } catch {
      this.#finish();
      return;
    }
    if (this.requestBody.done) this.#next();
    else if (this.#unwantedBytes > this.limits.drainBytesMax || this.stream.endedMs !== null) this.#finish();
  }

  /** Ends our side. What the client still sends is dropped until it closes too. */
  #finish(): void {
    this.#exchange = null;
    this.stream.takeHeld();
    this.#unwantedBytes = 0;
    this.#clock.enter("lingering");
    this.stream.duplex.end();
    this.stream.resume();
  }

  #detach(): Buffer {
    this.#exchange = null;
    this.#clock.phase = "handedOver";
    if (this.#timer !== null) clearInterval(this.#timer);
    return this.stream.detach();
  }

  #report(outcome: { status: number | null; forwarded: boolean; error: Error | null }): void {
    const request = this.#request;
    this.#request = null;
    if (request === null || this.#options.onRequest === undefined) return;
    this.#options.onRequest({ ...outcome, request: request.head, durationMs: performance.now() - request.startedMs });
  }

  #onTick(nowMs: number): void {
    const overdue = this.#clock.overdue(nowMs, this.stream, this.limits);
    if (overdue === "timeout") this.#refuse(requestTimeout());
    else if (overdue === "finish") this.#finish();
    else if (overdue === "reset") resetStream(this.stream.duplex);
    else this.#exchange?.onTick(nowMs, nowMs - this.#clock.touchedMs);
  }
}
