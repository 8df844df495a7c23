import { type Duplex, Transform } from "node:stream";
import { CaissonError } from "../../contract/error.ts";
import { BodyScanner, requestFraming } from "./body.ts";
import { Exchange, type ExchangeHost } from "./exchange.ts";
import { parseRequestHead, type RequestHead } from "./head.ts";
import { HeadReader } from "./head-reader.ts";
import { connectionWishes, isPersistent } from "./hop-by-hop.ts";
import { HttpSyntaxError } from "./http-syntax-error.ts";
import type { IncomingRequest } from "./incoming-request.ts";
import { localAnswer, tunnelAnswer, verdictOfError } from "./local-answer.ts";
import { UpstreamPool } from "./pool.ts";
import type { RelayOptions } from "./relay.ts";
import { type RelayLimits, relayLimits } from "./relay-limits.ts";
import { resetStream, sendPromptly } from "./reset-stream.ts";
import { pump } from "./tunnel.ts";
import type { AnswerVerdict, BodyTransform, TakeVerdict, Verdict } from "./verdict.ts";
import { NOTHING } from "./write-message.ts";

const websocketOnly = ["websocket"] as const;
const TICKS_PER_LIMIT = 4;
const TICK_MS_MIN = 5;

/** One client and its requests, one after the other. */
export class ClientConnection implements ExchangeHost {
  readonly client: Duplex;
  readonly limits: RelayLimits;
  readonly pool: UpstreamPool;
  readonly requestBody = new BodyScanner();
  readonly #options: RelayOptions;
  readonly #resolve: () => void;
  readonly #reader = new HeadReader({ emptyLineBefore: true });
  /** `draining` reads the rest of a body nobody wants; `lingering` waits for the client to close; `handedOver` is somebody else's. */
  #phase: "head" | "deciding" | "exchange" | "draining" | "lingering" | "handedOver" | "over" = "head";
  #phaseSinceMs = 0;
  #touchedMs = 0;
  #headSinceMs = 0;
  #endedMs: number | null = null;
  #held = NOTHING;
  #unwantedBytes = 0;
  #advancing = false;
  #request: IncomingRequest | null = null;
  #exchange: Exchange | null = null;
  #timer: NodeJS.Timeout | null = null;

  constructor(client: Duplex, options: RelayOptions, resolve: () => void) {
    this.client = client;
    this.#options = options;
    this.#resolve = resolve;
    this.limits = { ...relayLimits, ...options.limits };
    this.pool = options.pool ?? new UpstreamPool();
  }

  start(first: Buffer | undefined): void {
    const { client, limits } = this;
    const { signal } = this.#options;
    client.on("error", () => {});
    if (client.destroyed) {
      this.#onClose();
      return;
    }
    this.#touchedMs = performance.now();
    const { headMs, idleMs, keepAliveMs, connectMs, halfOpenMs, lingerMs } = limits;
    const tickMs = Math.min(headMs, idleMs, keepAliveMs, connectMs, halfOpenMs, lingerMs) / TICKS_PER_LIMIT;
    this.#timer = setInterval(() => this.#onTick(performance.now()), Math.max(TICK_MS_MIN, tickMs)).unref();
    client.once("close", () => this.#onClose());
    if (signal?.aborted) {
      client.destroy();
      return;
    }
    signal?.addEventListener("abort", this.#onAbort, { once: true });
    sendPromptly(client);
    client.on("end", this.#onEnd);
    client.on("drain", this.#onDrain);
    client.on("data", this.#onData);
    if (first !== undefined && first.length > 0) this.#onData(first);
    else client.resume();
    // Whoever read the first bytes may have come to the end with them, and that is told only once.
    if (client.readableEnded) this.#onEnd();
  }

  get isLast(): boolean {
    return this.#endedMs !== null && this.#held.length === 0;
  }

  takeHeld(): Buffer {
    const held = this.#held;
    this.#held = NOTHING;
    return held;
  }

  hold(bytes: Buffer): void {
    this.#held = this.#held.length === 0 ? bytes : Buffer.concat([this.#held, bytes]);
  }

  pauseClient(): void {
    this.client.pause();
  }

  resumeClient(): void {
    if (this.client.isPaused()) this.client.resume();
  }

  touch(): void {
    this.#touchedMs = performance.now();
  }

  countReceived(bytes: number): void {
    this.#options.onBytes?.(0, bytes);
  }

  exchangeEnded({ status, close }: { status: number; close: boolean }): void {
    this.#report({ status, forwarded: true, error: null });
    this.#afterAnswer(close);
  }

  exchangeFailed(error: unknown, status: number): void {
    this.#answer(verdictOfError(error, status), asError(error));
  }

  requestBroke(error: HttpSyntaxError): void {
    this.#refuse(error);
  }

  exchangeBroke(error: unknown, status: number): void {
    this.#report({ status, forwarded: true, error: asError(error) });
    resetStream(this.client);
  }

  becomeTunnel(tunnel: { upstream: Duplex; received: Buffer; transform: BodyTransform | undefined; status: number }): void {
    const first = this.#letGo();
    const { onBytes, signal } = this.#options;
    const request = this.#request;
    void pump(this.client, tunnel.upstream, {
      first,
      firstBack: tunnel.received,
      idleMs: this.limits.tunnelIdleMs,
      ...(onBytes === undefined ? {} : { onBytes }),
      ...(signal === undefined ? {} : { signal }),
      ...(tunnel.transform === undefined ? {} : { transformBack: asTransform(tunnel.transform) }),
    }).then(({ error }) => {
      this.#request = request;
      this.#report({ status: tunnel.status, forwarded: true, error });
    });
  }

  readonly #onData = (chunk: Buffer) => {
    this.touch();
    this.#options.onBytes?.(chunk.length, 0);
    if (this.#phase === "lingering") {
      this.#unwantedBytes += chunk.length;
      if (this.#unwantedBytes > this.limits.drainBytesMax) this.client.destroy();
    } else if (this.#phase === "draining") this.#drain(chunk);
    else if (this.#exchange?.wantsBody) this.#exchange.onRequestData(chunk);
    else {
      this.hold(chunk);
      if (this.#phase === "head" && !this.client.writableNeedDrain) this.#advance();
      else this.pauseClient();
    }
  };

  readonly #onEnd = () => {
    this.#endedMs = performance.now();
    if (this.#exchange?.wantsBody) resetStream(this.client);
    else if (this.#phase === "draining" || (this.#phase === "head" && this.#held.length === 0)) this.#finish();
  };

  readonly #onDrain = () => {
    this.touch();
    if (this.#exchange !== null) this.#exchange.onClientDrain();
    else if (this.#phase === "head") this.#advance();
  };

  readonly #onAbort = () => void this.client.destroy();

  #onClose(): void {
    if (this.#timer !== null) clearInterval(this.#timer);
    this.#options.signal?.removeEventListener("abort", this.#onAbort);
    if (this.#phase !== "handedOver") {
      this.#exchange?.abort();
      if (this.#request !== null) this.#report({ status: null, forwarded: false, error: new CaissonError("gone", "the client went away") });
    }
    this.#phase = "over";
    if (this.#options.pool === undefined) this.pool.close();
    this.#resolve();
  }

  /** Takes up one request after the other, as long as each is answered at once and the client reads its answers. */
  #advance(): void {
    if (this.#advancing) return;
    this.#advancing = true;
    while (this.#phase === "head" && this.#held.length > 0 && !this.client.writableNeedDrain) this.#onHeadBytes(this.takeHeld());
    this.#advancing = false;
    if (this.#phase !== "head" || this.#held.length > 0) return;
    if (this.#endedMs === null) this.resumeClient();
    else this.#finish();
  }

  #onHeadBytes(bytes: Buffer): void {
    let head: RequestHead;
    try {
      if (!this.#reader.begun) this.#headSinceMs = this.#touchedMs;
      const found = this.#reader.push(bytes);
      if (found === null) return;
      this.#held = this.#reader.rest;
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
    let verdict: Verdict | Promise<Verdict>;
    try {
      verdict = this.#options.decide(head);
    } catch (error) {
      this.exchangeFailed(error, 502);
      return;
    }
    if (!(verdict instanceof Promise)) this.#apply(verdict);
    else {
      verdict.then(
        (decided) => this.#apply(decided),
        (error) => this.#phase === "deciding" && this.exchangeFailed(error, 502),
      );
    }
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
    const bytes = localAnswer(verdict, { head, close });
    this.countReceived(bytes.length);
    this.client.write(bytes);
    this.#report({ status: verdict.status, forwarded: false, error });
    this.#afterAnswer(close);
  }

  #refuse(error: HttpSyntaxError): void {
    this.#request = null;
    this.#options.onBadRequest?.(error);
    const bytes = localAnswer(
      { kind: "answer", status: error.status, body: `Bad request: ${error.message}.\n` },
      { head: null, close: true },
    );
    this.countReceived(bytes.length);
    this.client.write(bytes);
    this.#finish();
  }

  #handOver(verdict: TakeVerdict): void {
    if (this.#phase === "deciding") {
      this.#report({ status: verdict.answer?.status ?? 200, forwarded: false, error: null });
      const first = this.#letGo();
      if (verdict.answer !== null) this.client.write(tunnelAnswer(verdict.answer));
      verdict.take(this.client, first);
    } else verdict.take(this.client, NOTHING);
  }

  #afterAnswer(close: boolean): void {
    this.#exchange = null;
    if (close) this.#finish();
    else if (this.requestBody.done) {
      this.#enter("head");
      this.#advance();
    } else {
      this.#enter("draining");
      this.#unwantedBytes = 0;
      this.#drain(this.takeHeld());
      this.resumeClient();
    }
  }

  #drain(chunk: Buffer): void {
    this.#unwantedBytes += chunk.length;
    try {
      const end = this.requestBody.scan(chunk, 0);
      if (end < chunk.length) this.hold(chunk.subarray(end));
    } catch {
      this.#finish();
      return;
    }
    if (this.requestBody.done) {
      this.#enter("head");
      this.#advance();
    } else if (this.#unwantedBytes > this.limits.drainBytesMax || this.#endedMs !== null) this.#finish();
  }

  /** Nothing more is said; what the client still sends is dropped until it closes, too. */
  #finish(): void {
    this.#exchange = null;
    this.#held = NOTHING;
    this.#unwantedBytes = 0;
    this.#enter("lingering");
    this.client.end();
    this.resumeClient();
  }

  #letGo(): Buffer {
    this.#exchange = null;
    this.#enter("handedOver");
    if (this.#timer !== null) clearInterval(this.#timer);
    this.client.pause();
    this.client.off("data", this.#onData).off("end", this.#onEnd).off("drain", this.#onDrain);
    return this.takeHeld();
  }

  #enter(phase: "head" | "draining" | "lingering" | "handedOver"): void {
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
    const { limits, client } = this;
    const quietMs = nowMs - this.#touchedMs;
    switch (this.#phase) {
      case "head":
        if (this.#reader.begun) {
          if (nowMs - this.#headSinceMs > limits.headMs) this.#refuse(new HttpSyntaxError("the head did not come in time", 408));
        } else if (quietMs > limits.keepAliveMs) this.#finish();
        return;
      case "deciding":
      case "exchange":
        this.#exchange?.onTick(nowMs);
        if (this.#endedMs !== null && nowMs - this.#endedMs > limits.halfOpenMs) resetStream(client);
        else if (quietMs <= limits.idleMs) return;
        else if (this.#exchange !== null) this.#exchange.onIdle();
        else if (this.#phase === "deciding") resetStream(client);
        return;
      case "draining":
        if (nowMs - this.#phaseSinceMs > limits.lingerMs) this.#finish();
        return;
      case "lingering":
        if (quietMs > (client.writableFinished ? limits.lingerMs : limits.idleMs)) resetStream(client);
        return;
      default:
    }
  }
}

function asError(error: unknown): Error {
  return error instanceof Error ? error : new Error(String(error));
}

function asTransform(transform: BodyTransform): Transform {
  if (typeof transform !== "function") return transform;
  return new Transform({ transform: (chunk, _encoding, done) => done(null, transform(chunk)) });
}
