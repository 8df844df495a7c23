import { CaissonError } from "../../contract/error.ts";
import type { OutputChunk } from "../sandbox.ts";
import { protocolError } from "./frame.ts";
import { CHUNKS_MAX, GrowingChunk } from "./growing-chunk.ts";
import { encodeAck } from "./raw.ts";

/** What the guest may have sent without an acknowledgement, for each descriptor. */
const OUTPUT_BUFFER = 1_048_576;
/** Acknowledged at once past this; less waits for the next frame or for an idle moment. */
const ACK_BATCH_BYTES = 262_144;

interface Descriptor {
  /** Where the next byte from the guest must begin; null until the first frame of a take-over tells. */
  received: number | null;
  consumed: number;
  acknowledged: number;
  /** Where small pieces are gathered while many chunks wait. */
  gathering: { chunk: OutputChunk; bytes: GrowingChunk } | null;
}

/**
 * The output of one process between the guest, which sends as long as it is acknowledged, and one consumer, which may
 * be slow. Holds at most `OUTPUT_BUFFER` for each descriptor; a guest that sends more breaks the protocol.
 */
export class OutputQueue implements AsyncIterable<OutputChunk> {
  readonly #onConsumed: (urgent: boolean) => void;
  readonly #onDrained: () => void;
  readonly #descriptors: [Descriptor, Descriptor];
  #chunks: OutputChunk[] = [];
  #head = 0;
  #handedOut: OutputChunk | null = null;
  #waiting: ((result: IteratorResult<OutputChunk, undefined>) => void) | null = null;
  #discarding = false;
  #finished = false;

  /** `onConsumed` is told when there is something to acknowledge, `onDrained` when nothing is left to consume. */
  constructor(options: {
    stdoutFrom: number | null;
    stderrFrom: number | null;
    onConsumed: (urgent: boolean) => void;
    onDrained: () => void;
  }) {
    this.#onConsumed = options.onConsumed;
    this.#onDrained = options.onDrained;
    this.#descriptors = [startAt(options.stdoutFrom), startAt(options.stderrFrom)];
  }

  get isDrained(): boolean {
    return this.#head === this.#chunks.length;
  }

  /** Whether everything the process wrote has come, consumed or not. */
  get isFinished(): boolean {
    return this.#finished;
  }

  /** Whether all up to these offsets has come, consumed or not. */
  hasReceived({ stdoutBytes, stderrBytes }: { stdoutBytes: number; stderrBytes: number }): boolean {
    const [stdout, stderr] = this.#descriptors;
    return (stdout.received ?? 0) >= stdoutBytes && (stderr.received ?? 0) >= stderrBytes;
  }

  /** The process is new: its output begins at 0. */
  expectStart(): void {
    for (const state of this.#descriptors) state.received ??= 0;
  }

  /** Bytes from the guest. Throws `protocol` for a gap, an overlap or more than was allowed. */
  push(descriptor: 1 | 2, offset: number, data: Buffer): OutputChunk {
    const state = this.#descriptors[descriptor - 1] as Descriptor;
    if (state.received === null) {
      state.consumed = offset;
      state.acknowledged = offset;
    } else if (offset !== state.received) throw protocolError(`output at ${offset} in place of ${state.received}`);
    const end = offset + data.length;
    if (end - state.acknowledged > OUTPUT_BUFFER) throw protocolError("more output than was acknowledged allows");
    state.received = end;
    const chunk: OutputChunk = { stream: descriptor === 1 ? "stdout" : "stderr", offset, data };
    if (this.#discarding) this.#consume(chunk);
    else if (this.#waiting !== null) {
      const give = this.#waiting;
      this.#waiting = null;
      this.#handedOut = chunk;
      give({ done: false, value: chunk });
    } else if (this.#chunks.length - this.#head < CHUNKS_MAX) this.#chunks.push(chunk);
    else this.#gather(state, chunk);
    return chunk;
  }

  /** Throws `protocol` when the guest's totals are not what it sent. */
  checkTotals(stdoutBytes: number, stderrBytes: number): void {
    const totals = [stdoutBytes, stderrBytes];
    this.#descriptors.forEach(({ received }, index) => {
      if (received !== null && received !== totals[index])
        throw protocolError(`${totals[index]} bytes of output in all, ${received} were sent`);
    });
  }

  /** Bytes seen so far, for the record of a process nobody heard the end of. */
  totals(): { stdoutBytes: number; stderrBytes: number } {
    return { stdoutBytes: this.#descriptors[0].received ?? 0, stderrBytes: this.#descriptors[1].received ?? 0 };
  }

  /** Nothing will be pushed any more. What is queued can still be consumed. */
  finish(): void {
    this.#finished = true;
    if (this.#waiting === null) return;
    const give = this.#waiting;
    this.#waiting = null;
    give({ done: true, value: undefined });
  }

  discard(): void {
    this.#discarding = true;
    const rest = this.#chunks.slice(this.#head);
    this.#chunks = [];
    this.#head = 0;
    for (const state of this.#descriptors) state.gathering = null;
    for (const chunk of rest) this.#consume(chunk);
    this.#onDrained();
  }

  takeAcks(stream: number, send: (frame: Buffer) => void): void {
    for (const descriptor of [1, 2] as const) {
      const state = this.#descriptors[descriptor - 1] as Descriptor;
      if (state.consumed === state.acknowledged) continue;
      state.acknowledged = state.consumed;
      send(encodeAck(stream, descriptor, state.consumed));
    }
  }

  [Symbol.asyncIterator](): AsyncIterator<OutputChunk, undefined> {
    return {
      next: () => this.#next(),
      // Leaving the loop keeps the rest for the next one; only waiting twice at once is an error.
      return: () => {
        this.#settleHandedOut();
        return Promise.resolve({ done: true, value: undefined });
      },
    };
  }

  #next(): Promise<IteratorResult<OutputChunk, undefined>> {
    this.#settleHandedOut();
    if (this.#head < this.#chunks.length) {
      const value = this.#chunks[this.#head++] as OutputChunk;
      if (this.#head === this.#chunks.length) {
        this.#chunks = [];
        this.#head = 0;
      }
      this.#handedOut = value;
      for (const state of this.#descriptors) if (state.gathering?.chunk === value) state.gathering = null;
      if (this.#chunks.length === 0) this.#onDrained();
      return Promise.resolve({ done: false, value });
    }
    if (this.#finished) return Promise.resolve({ done: true, value: undefined });
    if (this.#waiting !== null) return Promise.reject(new CaissonError("invalid", "the output of a process has one consumer at a time"));
    return new Promise((resolve) => {
      this.#waiting = resolve;
    });
  }

  /** A process that writes single bytes to a slow consumer must not cost an object for each of them. */
  #gather(state: Descriptor, chunk: OutputChunk): void {
    const data = state.gathering?.bytes.append(chunk.data);
    if (state.gathering && data) {
      state.gathering.chunk.data = data;
      return;
    }
    const bytes = new GrowingChunk();
    const begun = bytes.append(chunk.data);
    const gathered = begun ? { ...chunk, data: begun } : chunk;
    state.gathering = begun ? { chunk: gathered, bytes } : null;
    this.#chunks.push(gathered);
  }

  /** A chunk counts as consumed when the consumer comes back for the next, so that a crash in between loses nothing. */
  #settleHandedOut(): void {
    const chunk = this.#handedOut;
    if (chunk === null) return;
    this.#handedOut = null;
    this.#consume(chunk);
  }

  #consume(chunk: OutputChunk): void {
    const state = this.#descriptors[chunk.stream === "stdout" ? 0 : 1];
    state.consumed = chunk.offset + chunk.data.length;
    this.#onConsumed(state.consumed - state.acknowledged >= ACK_BATCH_BYTES);
  }
}

function startAt(from: number | null): Descriptor {
  return { received: from, consumed: from ?? 0, acknowledged: from ?? 0, gathering: null };
}
