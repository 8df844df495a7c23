import { constants } from "node:os";
import { CaissonError } from "../../contract/error/error.ts";
import type { ProcessRef } from "../../contract/ids.ts";
import type { Ended } from "../../contract/outcome.ts";
import { checkTerminalSize } from "../call-checks.ts";
import type { OutputChunk, Process } from "../sandbox.ts";
import { decodeFields, type Encodable, encodeFields, shapes } from "./fields.ts";
import { encodeFrame, frameCode, frameName, protocolError } from "./frame.ts";
import { errorFromGuest } from "./guest-error.ts";
import type { LazySource, Link, StreamHandler } from "./link.ts";
import { outcomeOf } from "./outcome.ts";
import { OutputQueue } from "./output-queue.ts";
import { decodeOutputHead, decodeStdinAck } from "./raw.ts";
import { openAndWait, tell } from "./request.ts";
import { ownIfSmall } from "./slab-reader.ts";
import { StdinPipe } from "./stdin-pipe.ts";
import { ANSWER_BOUND, silenceError, silenceOf, type Wait } from "./waits.ts";

/**
 * How long after a process's timeout the guest may take to end its tree and report it. After that, the guest is checked
 * repeatedly.
 */
const END_GRACE_MS = 10_000;
/** The number of checks in which a live guest may still not have ended the process. */
const LATE_LOOKS_MAX = 6;
const TIMER_MS_MAX = 2 ** 31 - 1;

/** Receives the events of a process as they happen, for a sandbox's event log. */
export interface ProcessObserver {
  /** Called before any other event of the process. */
  onStarted?(process: { pid: number; existing: boolean }): void;
  onOutput?(chunk: OutputChunk): void;
  /** Not called for a handle that was detached or replaced by another one. */
  onEnded?(ended: Ended): void;
}

export type ProcessRequest =
  | { type: "SPAWN"; values: Encodable<typeof shapes.SPAWN>; what: string }
  | { type: "ATTACH"; values: Encodable<typeof shapes.ATTACH>; what: string; follow?: boolean | undefined };

interface Starting {
  resolve: (process: GuestProcess) => void;
  reject: (error: CaissonError) => void;
}

/**
 * One stream attached to a process. `ended` is `lost` if the connection breaks, if this handle detaches (`detach`), or
 * if another handle takes over; then it gets no more messages.
 */
export class GuestProcess implements Process, StreamHandler, LazySource {
  readonly ended: Promise<Ended>;
  readonly output: OutputQueue;
  ref: ProcessRef;
  pid = 0;
  /** Whether the process existed before this handle. */
  existing = false;
  readonly #link: Link;
  readonly #request: ProcessRequest;
  readonly #observer: ProcessObserver;
  readonly #stream: number;
  readonly #startedMs = performance.now();
  readonly #startWait: Wait;
  /** Fires when the process should have ended long ago. */
  #late: NodeJS.Timeout | undefined;
  #lateLooks = 0;
  #starting: Starting | null;
  #resolveEnded!: (ended: Ended) => void;
  #stdin: StdinPipe | null = null;
  #pty = false;
  #outcome: Ended | null = null;
  /**
   * The offsets at which a reader that does not follow detaches; null for a follower, and for a process that has ended.
   */
  #until: { stdoutBytes: number; stderrBytes: number } | null = null;
  #settled = false;

  constructor(link: Link, request: ProcessRequest, observer: ProcessObserver, starting: Starting) {
    this.#link = link;
    this.#request = request;
    this.#observer = observer;
    this.#starting = starting;
    this.ref = request.values.ref;
    this.ended = new Promise((resolve) => {
      this.#resolveEnded = resolve;
    });
    const { stdoutFrom, stderrFrom } = request.values;
    this.output = new OutputQueue({
      stdoutFrom: stdoutFrom ?? null,
      stderrFrom: stderrFrom ?? null,
      onConsumed: (urgent) => this.#acknowledge(urgent),
      onDrained: () => this.#settleIfDone(),
    });
    const { stream, wait } = openAndWait(link, this, { ...request, bound: ANSWER_BOUND, onGivenUp: (error) => this.onLost(error) });
    this.#stream = stream;
    this.#startWait = wait;
  }

  onFrame(type: number, payload: Buffer): boolean {
    this.#startWait.end();
    if (this.#starting !== null) return this.#onFirstFrame(this.#starting, type, payload);
    switch (type) {
      case frameCode.ENDED:
        this.#onEnded(payload);
        return true;
      case frameCode.STDIN_ACK:
        if (this.#stdin === null) throw protocolError("STDIN_ACK for a process without stdin");
        this.#stdin.acknowledge(decodeStdinAck(payload));
        return false;
      case frameCode.ERROR:
        // Another stream attached to the process and took over.
        this.#settleWith(errorFromGuest(`listening to process ${this.ref}`, payload));
        return true;
      default:
        throw protocolError(`${frameName(type)} on the stream of a process`);
    }
  }

  onBulk(type: number, head: Buffer, data: Buffer, position: number): void {
    if (type !== frameCode.OUTPUT || this.#starting !== null) throw protocolError(`${frameName(type)} on the stream of a process`);
    const { descriptor, offset } = decodeOutputHead(head);
    if (data.length === 0) throw protocolError("OUTPUT without bytes");
    const chunk = this.output.push(descriptor, offset + position, ownIfSmall(data));
    this.#observer.onOutput?.(chunk);
    this.#settleIfRead();
  }

  onLost(error: CaissonError): void {
    const starting = this.#starting;
    this.#starting = null;
    if (starting !== null) {
      starting.reject(error);
      return;
    }
    const outcome = this.#lostOutcome();
    this.#observer.onEnded?.(outcome);
    this.#settleWith(error, outcome);
  }

  discardOutput(): void {
    this.output.discard();
  }

  write(data: Uint8Array): Promise<void> {
    return this.#stdin === null ? Promise.reject(this.#noStdin()) : this.#stdin.write(data);
  }

  closeStdin(): Promise<void> {
    return this.#stdin === null ? Promise.reject(this.#noStdin()) : this.#stdin.close();
  }

  async resize(size: { cols: number; rows: number }): Promise<void> {
    checkTerminalSize(size);
    if (!this.#pty) throw new CaissonError("invalid", `process ${this.ref} has no terminal`, { hint: "Start it with pty." });
    if (this.#outcome === null && !this.#settled) this.#link.send(encodeFields("RESIZE", this.#stream, shapes.RESIZE, size));
  }

  async signal(name: NodeJS.Signals, options: { scope?: "tree" | "leader" } = {}): Promise<void> {
    const signal = constants.signals[name];
    if (signal === undefined) throw new CaissonError("invalid", `there is no signal ${name}`, { hint: "Use a name like SIGTERM." });
    const tree = options.scope !== "leader";
    // The tree may outlive its leader: processes that it left behind can still get signals.
    if (this.#outcome !== null && !tree) return;
    await this.#unlessEnded(tell(this.#link, { type: "SIGNAL", values: { ref: this.ref, signal, tree }, what: `${name} to ${this.ref}` }));
  }

  async kill(): Promise<void> {
    try {
      await this.#unlessEnded(tell(this.#link, { type: "KILL", values: { ref: this.ref }, what: `killing ${this.ref}` }));
    } catch (error) {
      // The caller that killed the process waits for its end, which this guest will not report.
      const silence = silenceOf(error);
      if (silence !== null && silence !== "frozen" && !this.#settled && this.#outcome === null) this.#giveUp(error as CaissonError);
      throw error;
    }
  }

  detach(): void {
    if (this.#settled) return;
    if (this.#outcome !== null) {
      this.#settled = true;
      this.#resolveEnded(this.#outcome);
      return;
    }
    this.takeFrames((frame) => this.#link.send(frame));
    this.#link.cancel(this.#stream, encodeFrame("CANCEL", this.#stream));
    this.#settleWith(new CaissonError("gone", `this handle of process ${this.ref} was detached`));
  }

  takeFrames(send: (frame: Buffer) => void): void {
    this.output.takeAcks(this.#stream, send);
  }

  #onFirstFrame(starting: Starting, type: number, payload: Buffer): boolean {
    if (type === frameCode.ERROR) {
      const error = errorFromGuest(this.#request.what, payload);
      this.#starting = null;
      starting.reject(error);
      return true;
    }
    if (type !== frameCode.STARTED) throw protocolError(`${frameName(type)} before STARTED`);
    const started = decodeFields("STARTED", shapes.STARTED, payload);
    if (started.ref !== this.ref) throw protocolError("STARTED for another process");
    if (started.stdinWritten > started.stdinBytes) throw protocolError("more stdin written than received");
    this.pid = started.pid;
    this.existing = started.existing;
    this.#pty = started.pty;
    if (!started.existing) this.output.expectStart();
    const { values } = this.#request;
    const hasStdin = this.#request.type === "ATTACH" || started.existing || started.pty || ("stdin" in values && values.stdin === true);
    if (hasStdin)
      this.#stdin = new StdinPipe({ link: this.#link, stream: this.#stream, received: started.stdinBytes, written: started.stdinWritten });
    this.#starting = null;
    if ("timeoutMs" in values && values.timeoutMs !== undefined) this.#lookAfter(values.timeoutMs + END_GRACE_MS);
    this.#observer.onStarted?.(this);
    starting.resolve(this);
    if (this.#request.type === "ATTACH" && this.#request.follow === false && !started.ended) this.#until = started;
    this.#settleIfRead();
    return false;
  }

  #settleIfRead(): void {
    if (this.#until !== null && this.output.hasReceived(this.#until)) this.detach();
  }

  #lookAfter(delayMs: number): void {
    this.#late = setTimeout(() => void this.#lookWhyLate(), Math.min(delayMs, TIMER_MS_MAX)).unref();
  }

  /**
   * Checks on a guest that should have ended the process. If it does not even answer, the process is lost. A frozen
   * guest gets more time, as does a process whose output is not being consumed.
   */
  async #lookWhyLate(): Promise<void> {
    const found = await this.#link.waits.look();
    if (this.#outcome !== null || this.#settled) return;
    const excused = found === "frozen" || !this.output.isDrained;
    if (excused || (found === null && ++this.#lateLooks < LATE_LOOKS_MAX)) {
      this.#lookAfter(END_GRACE_MS);
      return;
    }
    this.#giveUp(silenceError(`the end of process ${this.ref}`, found === null ? "slow" : found === "stopped" ? "stopped" : "silent"));
  }

  #giveUp(error: CaissonError): void {
    this.#link.cancel(this.#stream, encodeFrame("CANCEL", this.#stream));
    this.onLost(error);
  }

  #onEnded(payload: Buffer): void {
    clearTimeout(this.#late);
    const fields = decodeFields("ENDED", shapes.ENDED, payload);
    this.output.checkTotals(fields.stdoutBytes, fields.stderrBytes);
    this.#outcome = outcomeOf(fields);
    this.#stdin?.end(new CaissonError("gone", `process ${this.ref} has ended`));
    this.#observer.onEnded?.(this.#outcome);
    this.output.finish();
    this.#settleIfDone();
  }

  #acknowledge(urgent: boolean): void {
    if (this.#settled && this.#outcome === null) return;
    if (urgent) this.takeFrames((frame) => this.#link.send(frame));
    else this.#link.sendLazily(this);
  }

  #settleIfDone(): void {
    if (this.#outcome === null || this.#settled || !this.output.isDrained) return;
    this.#settled = true;
    this.#resolveEnded(this.#outcome);
  }

  #settleWith(why: CaissonError, outcome = this.#lostOutcome()): void {
    if (this.#settled) return;
    this.#settled = true;
    clearTimeout(this.#late);
    this.#link.dropLazy(this);
    this.#stdin?.end(why);
    this.output.finish();
    this.#resolveEnded(outcome);
  }

  #lostOutcome(): Ended {
    return { kind: "lost", durationMs: Math.round(performance.now() - this.#startedMs), ...this.output.totals(), memoryKills: 0 };
  }

  #noStdin(): CaissonError {
    return new CaissonError("invalid", `process ${this.ref} has no stdin`, { hint: 'Start it with stdin: "pipe", or with a terminal.' });
  }

  async #unlessEnded(answer: Promise<unknown>): Promise<void> {
    try {
      await answer;
    } catch (error) {
      if (error instanceof CaissonError && (error.code === "not_found" || error.code === "gone")) return;
      throw error;
    }
  }
}
