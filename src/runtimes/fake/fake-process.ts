import { constants } from "node:os";
import { CaissonError } from "../../contract/error/error.ts";
import { ignore } from "../../lib/failures.ts";
import type { Clock } from "./clock.ts";

export type FakeEnd =
  | { kind: "exited"; exitCode: number }
  | { kind: "signaled"; signal: number }
  | { kind: "timedOut" | "output" | "cancelled" };

export interface OutputSink {
  onOutput(descriptor: 1 | 2, offset: number, data: Buffer): void;
  onStdinConsumed(offset: number): void;
  onTakenOver(): void;
  onEnded(process: FakeProcess): void;
}

const OUTPUT_BUFFER = 1_048_576;
const PIPE_BYTES = 65_536;

interface Held {
  base: number;
  end: number;
  /** The offset that the attached client has acknowledged. Equals `base` unless the process keeps its last output. */
  taken: number;
  pieces: Buffer[];
}

/** A process of a fake machine: its program, its unacknowledged output, and its pending input. */
export class FakeProcess {
  readonly pid: number;
  readonly ref: string | null;
  readonly parent: FakeProcess | null;
  readonly argv: readonly string[];
  readonly uid: number;
  readonly startedMs: number;
  readonly hasStdin: boolean;
  readonly keepsLast: boolean;
  readonly children = new Set<FakeProcess>();
  terminal: { cols: number; rows: number } | null;
  end: FakeEnd | null = null;
  endedMs = 0;
  stdinBytes = 0;
  stdinConsumed = 0;
  readonly #clock: Clock;
  readonly #outputBytesMax: number;
  readonly #held: [Held, Held] = [
    { base: 0, end: 0, taken: 0, pieces: [] },
    { base: 0, end: 0, taken: 0, pieces: [] },
  ];
  readonly #handlers = new Map<string, () => void>();
  readonly #killed = Promise.withResolvers<never>();
  readonly #stdin: Buffer[] = [];
  #stdinEnded = false;
  #stdinWaiter: (() => void) | null = null;
  #sink: OutputSink | null = null;
  #roomWaiters: (() => void)[] = [];
  #cancelTimeout: (() => void) | null = null;

  constructor(options: {
    pid: number;
    ref: string | null;
    parent: FakeProcess | null;
    argv: readonly string[];
    uid: number;
    clock: Clock;
    terminal: { cols: number; rows: number } | null;
    stdin: boolean;
    timeoutMs: number;
    outputBytesMax: number;
    keepLast: boolean;
  }) {
    this.pid = options.pid;
    this.ref = options.ref;
    this.parent = options.parent;
    this.argv = options.argv;
    this.uid = options.uid;
    this.#clock = options.clock;
    this.terminal = options.terminal;
    this.hasStdin = options.stdin;
    this.keepsLast = options.keepLast;
    this.#outputBytesMax = options.outputBytesMax;
    this.startedMs = this.#clock.now();
    void ignore(this.#killed.promise, "awaited by run");
    this.#stdinEnded = !options.stdin;
    if (options.timeoutMs > 0) this.#cancelTimeout = this.#clock.after(options.timeoutMs, () => this.killTree({ kind: "timedOut" }));
  }

  /** Runs the program to its end. Never rejects. */
  async run(program: (process: FakeProcess) => number | undefined | Promise<number | undefined>): Promise<void> {
    try {
      const exitCode = await Promise.race([Promise.resolve().then(() => program(this)), this.#killed.promise]);
      this.#finish({ kind: "exited", exitCode: exitCode ?? 0 });
    } catch (error) {
      if (this.end === null) {
        await ignore(this.write(2, Buffer.from(`${error instanceof Error ? error.message : String(error)}\n`)), "the exit code reports it");
        this.#finish({ kind: "exited", exitCode: 1 });
      }
    }
  }

  /** Ends the process at once. The error that it throws unwinds the program. */
  exit(code: number): never {
    this.#finish({ kind: "exited", exitCode: code & 0xff });
    throw new CaissonError("cancelled", "the program has ended");
  }

  async write(descriptor: 1 | 2, bytes: Uint8Array | string): Promise<void> {
    const text = typeof bytes === "string" ? Buffer.from(bytes) : Buffer.from(bytes);
    const data = this.terminal === null ? text : Buffer.from(text.toString("latin1").replaceAll("\n", "\r\n"), "latin1");
    const into = this.terminal === null ? descriptor : 1;
    for (let at = 0; at < data.length; ) {
      const held = this.#held[into - 1] as Held;
      const room = OUTPUT_BUFFER - (held.end - held.base);
      if (room === 0 && this.#dropOldest(held)) continue;
      if (room === 0) {
        const waiting = new Promise<void>((resolve) => this.#roomWaiters.push(resolve));
        await Promise.race([waiting, this.#killed.promise]);
        continue;
      }
      if (this.end !== null) return this.#killed.promise;
      const allowed = this.#outputBytesMax > 0 ? this.#outputBytesMax - this.#written() : Number.POSITIVE_INFINITY;
      const piece = data.subarray(at, at + Math.min(room, allowed, PIPE_BYTES));
      if (piece.length === 0) {
        this.killTree({ kind: "output" });
        return this.#killed.promise;
      }
      at += piece.length;
      const offset = held.end;
      held.pieces.push(piece);
      held.end += piece.length;
      this.#sink?.onOutput(into, offset, piece);
    }
  }

  read(): Promise<Uint8Array | null> {
    return Promise.race([this.#readStdin(), this.#killed.promise]);
  }

  sleep(ms: number): Promise<void> {
    return Promise.race([new Promise<void>((resolve) => void this.#clock.after(ms, resolve)), this.#killed.promise]);
  }

  onSignal(name: string, handler: () => void): void {
    this.#handlers.set(name, handler);
  }

  signal(number: number): void {
    if (this.end !== null) return;
    const name = Object.entries(constants.signals).find(([, value]) => value === number)?.[0] ?? "";
    const handler = name === "SIGKILL" ? undefined : this.#handlers.get(name);
    if (handler !== undefined) handler();
    else if (name !== "SIGCHLD" && name !== "SIGWINCH" && name !== "SIGCONT" && name !== "SIGURG")
      this.#finish({ kind: "signaled", signal: number });
  }

  /** Ends the process with an exit code from outside the program's flow, as a signal handler does. */
  exitFromHandler(code: number): void {
    this.#finish({ kind: "exited", exitCode: code });
  }

  /** Returns every live process of the tree, this one first. */
  tree(): FakeProcess[] {
    const own = this.end === null ? [this as FakeProcess] : [];
    return [...own, ...[...this.children].flatMap((child) => child.tree())];
  }

  killTree(end: FakeEnd): void {
    for (const child of this.children) child.killTree({ kind: "signaled", signal: constants.signals.SIGKILL });
    this.#finish(end);
  }

  /** Whether no output from these offsets on was dropped. */
  holdsFrom(from: { stdout: number | null; stderr: number | null }): boolean {
    const [stdout, stderr] = this.#held;
    return (from.stdout ?? stdout.base) >= stdout.base && (from.stderr ?? stderr.base) >= stderr.base;
  }

  /** Sends the stored output from the offsets on, then new output as it arrives. Notifies the previous listener. */
  attach(sink: OutputSink, from: { stdout: number | null; stderr: number | null }): void {
    const starts = [from.stdout, from.stderr];
    if (this.#sink !== null && this.end === null) this.#sink.onTakenOver();
    this.#sink = sink;
    for (const [index, held] of this.#held.entries()) {
      let at = held.base;
      const start = starts[index] ?? held.base;
      if (this.keepsLast) held.taken = start;
      for (const piece of held.pieces) {
        if (at + piece.length > start) {
          const skip = Math.max(0, start - at);
          sink.onOutput((index + 1) as 1 | 2, at + skip, piece.subarray(skip));
        }
        at += piece.length;
      }
    }
    if (this.end !== null) sink.onEnded(this);
  }

  detach(sink: OutputSink): void {
    if (this.#sink !== sink) return;
    this.#sink = null;
    this.#wakeWriters();
  }

  acknowledge(descriptor: 1 | 2, offset: number): void {
    const held = this.#held[descriptor - 1] as Held;
    held.taken = Math.max(held.taken, Math.min(offset, held.end));
    if (!this.keepsLast) drop(held, held.taken);
    this.#wakeWriters();
  }

  /** Makes room by dropping old output, unless a client still waits for it. */
  #dropOldest(held: Held): boolean {
    if (!this.keepsLast) return false;
    const before = held.base + PIPE_BYTES;
    const { base } = held;
    drop(held, this.#sink === null ? before : Math.min(before, held.taken));
    return held.base > base;
  }

  #wakeWriters(): void {
    const waiters = this.#roomWaiters;
    this.#roomWaiters = [];
    for (const waiter of waiters) waiter();
  }

  /** Adds bytes to its stdin at an offset, skipping those already received. */
  feed(offset: number, data: Buffer): void {
    const fresh = data.subarray(Math.max(0, this.stdinBytes - offset));
    this.stdinBytes = Math.max(this.stdinBytes, offset + data.length);
    if (this.terminal !== null && fresh.includes(3)) {
      for (const process of this.tree()) process.signal(constants.signals.SIGINT);
      return;
    }
    if (fresh.length === 0) return;
    this.#stdin.push(Buffer.from(fresh));
    this.#wakeReader();
  }

  endStdin(): void {
    this.#stdinEnded = true;
    this.#wakeReader();
  }

  totals(): { stdoutBytes: number; stderrBytes: number } {
    return { stdoutBytes: this.#held[0].end, stderrBytes: this.#held[1].end };
  }

  #written(): number {
    return this.#held[0].end + this.#held[1].end;
  }

  async #readStdin(): Promise<Uint8Array | null> {
    while (true) {
      const data = this.#stdin.shift();
      if (data !== undefined) {
        this.stdinConsumed += data.length;
        this.#sink?.onStdinConsumed(this.stdinConsumed);
        return data;
      }
      if (this.#stdinEnded) return null;
      await new Promise<void>((resolve) => {
        this.#stdinWaiter = resolve;
      });
    }
  }

  #wakeReader(): void {
    this.#stdinWaiter?.();
    this.#stdinWaiter = null;
  }

  #finish(end: FakeEnd): void {
    if (this.end !== null) return;
    this.end = end;
    this.endedMs = this.#clock.now();
    this.#cancelTimeout?.();
    this.#killed.reject(new CaissonError("cancelled", "the process has ended"));
    this.#sink?.onEnded(this);
  }
}

function drop(held: Held, before: number): void {
  while (held.pieces[0] !== undefined && held.base + held.pieces[0].length <= before) held.base += (held.pieces.shift() as Buffer).length;
  if (before > held.base && held.pieces[0] !== undefined) {
    held.pieces[0] = held.pieces[0].subarray(before - held.base);
    held.base = before;
  }
}
