import { type Duplex, Transform } from "node:stream";
import { CaissonError } from "../../contract/error.ts";
import { BodyScanner, requestFraming } from "./body.ts";
import { type ClientEvents, ClientStream } from "./client-stream.ts";
import { Exchange, type ExchangeHost, type Switched } from "./exchange.ts";
import { parseRequestHead, type RequestHead } from "./head.ts";
import { HeadReader } from "./head-reader.ts";
import { connectionWishes, isPersistent } from "./hop-by-hop.ts";
import type { HttpSyntaxError } from "./http-syntax-error.ts";
import type { IncomingRequest } from "./incoming-request.ts";
import { localAnswer, requestTimeout, tunnelAnswer, verdictOfError } from "./local-answer.ts";
import { UpstreamPool } from "./pool.ts";
import { pump } from "./pump.ts";
import type { RelayOptions } from "./relay.ts";
import { type RelayLimits, relayLimits, tickMsOf } from "./relay-limits.ts";
import { resetStream } from "./reset-stream.ts";
import type { AnswerVerdict, BodyTransform, TakeVerdict, Verdict } from "./verdict.ts";
import { NOTHING } from "./write-message.ts";

const websocketOnly = ["websocket"] as const;

/** `draining` reads the rest of a body nobody wants; `lingering` waits for the client to close; `handedOver` is somebody else's. */
type Phase = "head" | "deciding" | "exchange" | "draining" | "lingering" | "handedOver" | "over";

/** One client and its requests, one after the other. */
export class ClientConnection implements ExchangeHost, ClientEvents {
  readonly stream: ClientStream;
  readonly limits: RelayLimits;
  readonly pool: UpstreamPool;
  readonly requestBody = new BodyScanner();
  readonly #options: RelayOptions;
  readonly #resolve: () => void;
  readonly #reader = new HeadReader({ emptyLineBefore: true });
  readonly #onAbort = () => void this.stream.duplex.destroy();
  #phase: Phase = "head";
  #phaseSinceMs = 0;
  #touchedMs = 0;
  #headSinceMs = 0;
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
    this.#enter("head");
    this.stream.listen(first);
  }

  get isLast(): boolean {
    return this.stream.endedMs !== null && !this.stream.holdsBytes;
  }

  touch(): void {
    this.#touchedMs = performance.now();
  }

  onData(chunk: Buffer): void {
    if (this.#phase === "lingering") {
      this.#unwantedBytes += chunk.length;
      if (this.#unwantedBytes > this.limits.drainBytesMax) this.stream.duplex.destroy();
      return;
    }
    if (this.#phase === "draining") {
      this.#drain(chunk);
      return;
    }
    this.touch();
    if (this.#exchange?.wantsBody) this.#exchange.onRequestData(chunk);
    else {
      this.stream.hold(chunk);
      if (this.#phase === "head" && !this.stream.duplex.writableNeedDrain) this.#advance();
      else this.stream.pause();
    }
  }

  onEnd(): void {
    if (this.#exchange?.wantsBody) resetStream(this.stream.duplex);
    else if (this.#phase === "draining" || (this.#phase === "head" && !this.stream.holdsBytes)) this.#finish();
  }

  onDrain(): void {
    this.touch();
    if (this.#exchange !== null) this.#exchange.onClientDrain();
    else if (this.#phase === "head") this.#advance();
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
    const first = this.#letGo();
    const { onBytes, signal } = this.#options;
    void pump(this.stream.duplex, upstream, {
      first,
      firstBack: received,
      idleMs: this.limits.tunnelIdleMs,
      ...(onBytes === undefined ? {} : { onBytes }),
      ...(signal === undefined ? {} : { signal }),
      ...(transform === undefined ? {} : { transformBack: asTransform(transform) }),
    }).then(({ error }) => this.#report({ status, forwarded: true, error }));
  }

  #onClose(): void {
    if (this.#timer !== null) clearInterval(this.#timer);
    this.#options.signal?.removeEventListener("abort", this.#onAbort);
    if (this.#phase !== "handedOver") {
      this.#exchange?.abort();
      this.#report({ status: null, forwarded: false, error: new CaissonError("gone", "the client went away") });
    }
    this.#phase = "over";
    if (this.#options.pool === undefined) this.pool.close();
    this.#resolve();
  }

  /** Takes up one request after the other, as long as each is answered at once and the client reads its answers. */
  #advance(): void {
    if (this.#advancing) return;
    this.#advancing = true;
    const { stream } = this;
    while (this.#phase === "head" && stream.holdsBytes && !stream.duplex.writableNeedDrain) this.#onHeadBytes(stream.takeHeld());
    this.#advancing = false;
    if (this.#phase !== "head" || stream.holdsBytes) return;
    if (stream.endedMs === null) stream.resume();
    else this.#finish();
  }

  #onHeadBytes(bytes: Buffer): void {
    let head: RequestHead;
    try {
      if (!this.#reader.begun) this.#headSinceMs = this.#touchedMs;
      const found = this.#reader.push(bytes);
      if (found === null) return;
      this.stream.hold(this.#reader.rest);
      head = parseRequestHead(found);
    } catch (error) {
      this.#refuse(error as HttpSyntaxError);
      return;
    }
    const framing = requestFraming(head);
    this.#request = { head, framing, wishes: connectionWishes(head), startedMs: this.#touchedMs };
    this.requestBody.start(framing);
    this.#phase = "deciding";
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
    if (this.#phase === "deciding") this.exchangeFailed(error, 502);
    else if (this.#phase !== "over") resetStream(this.stream.duplex);
  }

  #apply(verdict: Verdict): void {
    // Whoever takes a connection may hold something for it: it learns from the stream that the client is gone.
    if (verdict.kind === "take") this.#handOver(verdict);
    else if (this.#phase !== "deciding") return;
    else if (verdict.kind === "answer") this.#answer(verdict, null);
    else {
      this.#phase = "exchange";
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
    if (this.#phase !== "deciding") {
      verdict.take(this.stream.duplex, NOTHING);
      return;
    }
    if (verdict.answer !== null) this.stream.write(tunnelAnswer(verdict.answer));
    const first = this.#letGo();
    this.#report({ status: verdict.answer?.status ?? 200, forwarded: false, error: null });
    verdict.take(this.stream.duplex, first);
  }

  #afterAnswer(close: boolean): void {
    this.#exchange = null;
    if (close) this.#finish();
    else if (this.requestBody.done) this.#next();
    else {
      this.#enter("draining");
      this.#unwantedBytes = 0;
      this.#drain(this.stream.takeHeld());
      this.stream.resume();
    }
  }

  #next(): void {
    this.#enter("head");
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

  /** Nothing more is said; what the client still sends is dropped until it closes, too. */
  #finish(): void {
    this.#exchange = null;
    this.stream.takeHeld();
    this.#unwantedBytes = 0;
    this.#enter("lingering");
    this.stream.duplex.end();
    this.stream.resume();
  }

  #letGo(): Buffer {
    this.#exchange = null;
    this.#phase = "handedOver";
    if (this.#timer !== null) clearInterval(this.#timer);
    return this.stream.letGo();
  }

  #enter(phase: Phase): void {
    this.#phase = phase;
    this.#phaseSinceMs = this.#touchedMs = performance.now();
  }

  #report(outcome: { status: number | null; forwarded: boolean; error: Error | null }): void {
    const request = this.#request;
    this.#request = null;
    if (request === null || this.#options.onRequest === undefined) return;
    this.#options.onRequest({ ...outcome, request: request.head, durationMs: performance.now() - request.startedMs });
  }

  #onTick(nowMs: number): void {
    const { limits, stream } = this;
    const quietMs = nowMs - this.#touchedMs;
    if (this.#phase === "head") {
      if (!this.#reader.begun) {
        if (quietMs > limits.keepAliveMs) this.#finish();
      } else if (nowMs - this.#headSinceMs > limits.headMs) this.#refuse(requestTimeout());
    } else if (this.#phase === "draining") {
      if (nowMs - this.#phaseSinceMs > limits.lingerMs) this.#finish();
    } else if (this.#phase === "lingering") {
      // The client's time to close begins when it has been given everything.
      if (!stream.duplex.writableFinished) this.#phaseSinceMs = nowMs;
      if (nowMs - this.#phaseSinceMs > limits.lingerMs || quietMs > limits.idleMs + limits.lingerMs) resetStream(stream.duplex);
    } else if (stream.endedMs !== null && nowMs - stream.endedMs > limits.halfOpenMs) resetStream(stream.duplex);
    else if (this.#exchange !== null) this.#exchange.onTick(nowMs, quietMs);
    else if (quietMs > limits.idleMs) resetStream(stream.duplex);
  }
}

function asError(error: unknown): Error {
  return error instanceof Error ? error : new Error(String(error));
}

function asTransform(transform: BodyTransform): Transform {
  if (typeof transform !== "function") return transform;
  return new Transform({ transform: (chunk, _encoding, done) => done(null, transform(chunk)) });
}
