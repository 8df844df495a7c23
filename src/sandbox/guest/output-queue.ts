import { CaissonError } from "../../contract/error/error.ts";
import type { OutputChunk } from "../sandbox.ts";
import { protocolError } from "./frame.ts";
import { CHUNKS_MAX, GrowingChunk } from "./growing-chunk.ts";
import { encodeAck } from "./raw.ts";

/** The bytes that the guest may send without an acknowledgement, per descriptor. */
const OUTPUT_BUFFER = 1_048_576;
/** More than this is acknowledged immediately; less waits for the next frame or an idle moment. */
const ACK_BATCH_BYTES = 262_144;

interface Descriptor {
  /** The offset at which the guest's next byte must start; null until the first frame after a takeover sets it. */
  received: number | null;
  consumed: number;
  acknowledged: number;
  /** Collects small pieces while many chunks wait. */
  gathering: { chunk: OutputChunk; bytes: GrowingChunk } | null;
}

/**
 * The output of one process, between the guest, which sends as long as it gets acknowledgements, and one consumer,
 * which may be slow. Holds at most `OUTPUT_BUFFER` per descriptor; a guest that sends more violates the protocol.
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

  /** `onConsumed` is called when there is something to acknowledge, `onDrained` when nothing remains to consume. */
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

  /** Whether all output of the process has arrived, consumed or not. */
  get isFinished(): boolean {
    return this.#finished;
  }

  /** Whether all output up to these offsets has arrived, consumed or not. */
  hasReceived({ stdoutBytes, stderrBytes }: { stdoutBytes: number; stderrBytes: number }): boolean {
    const [stdout, stderr] = this.#descriptors;
    return (stdout.received ?? 0) >= stdoutBytes && (stderr.received ?? 0) >= stderrBytes;
  }

  /** Expects the output to start at 0, for a new process. */
  expectStart(): void {
    for (const state of this.#descriptors) state.received ??= 0;
  }

  /** Adds bytes from the guest. Throws `protocol` for a gap, an overlap or bytes beyond the window. */
  push(descriptor: 1 | 2, offset: number, data: Buffer): OutputChunk {
    const state = this.#descriptors[descriptor - 1] as Descriptor;
    if (state.received === null) {
      state.consumed = offset;
      state.acknowledged = offset;
    } else if (offset !== state.received) throw protocolError(`output at offset ${offset} instead of ${state.received}`);
    const end = offset + data.length;
    if (end - state.acknowledged > OUTPUT_BUFFER) throw protocolError("more output than the acknowledgements allow");
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

  /** Throws `protocol` if the guest's totals differ from what it sent. */
  checkTotals(stdoutBytes: number, stderrBytes: number): void {
    const totals = [stdoutBytes, stderrBytes];
    this.#descriptors.forEach(({ received }, index) => {
      if (received !== null && received !== totals[index])
        throw protocolError(`the guest reports ${totals[index]} bytes of output, but sent ${received}`);
    });
  }

  /** Returns the bytes received so far, for the record of a process whose end is unknown. */
  totals(): { stdoutBytes: number; stderrBytes: number } {
    return { stdoutBytes: this.#descriptors[0].received ?? 0, stderrBytes: this.#descriptors[1].received ?? 0 };
  }

  /** Marks the end: nothing more will be pushed, but queued output can still be consumed. */
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
      // Leaving the loop keeps the rest for the next one; only two waits at the same time are an error.
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

  /**
   * Merges small chunks: a process that writes single bytes to a slow consumer must not cost an object for each byte.
   */
  #gather(state: Descriptor, chunk: OutputChunk): void {
    const data = state.gathering?.bytes.append(chunk.data);
    if (state.gathering && data) {
      state.gathering.chunk.data = data;
      return;
    }
    const bytes = new GrowingChunk();
    const firstBytes = bytes.append(chunk.data);
    const gathered = firstBytes ? { ...chunk, data: firstBytes } : chunk;
    state.gathering = firstBytes ? { chunk: gathered, bytes } : null;
    this.#chunks.push(gathered);
  }

  /** A chunk counts as consumed when the consumer asks for the next one, so a crash in between loses nothing. */
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
