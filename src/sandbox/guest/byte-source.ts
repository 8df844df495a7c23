import { CaissonError } from "../../contract/error/error.ts";
import { protocolError } from "./frame.ts";
import { CHUNKS_MAX, GrowingChunk } from "./growing-chunk.ts";

/** The bytes that a sender of `DATA` may send before it gets credit. */
export const STREAM_WINDOW = 1_048_576;
const CREDIT_BATCH_BYTES = 262_144;

/** The `DATA` of one stream on its way to one consumer. The guest gets credit for consumed bytes. */
export class ByteSource implements AsyncIterable<Uint8Array> {
  readonly #grant: (bytes: number) => void;
  readonly #cancel: () => void;
  readonly #onStarved: (is: boolean) => void;
  #chunks: Buffer[] = [];
  #head = 0;
  #gathering: GrowingChunk | null = null;
  #allowance = STREAM_WINDOW;
  #consumed = 0;
  #state: "open" | "ended" | "failed" | "cancelled" = "open";
  #failure: CaissonError | null = null;
  #waiting: { resolve: (result: IteratorResult<Uint8Array, undefined>) => void; reject: (error: CaissonError) => void } | null = null;
  #iterating = false;

  /**
   * `grant` sends credit, `cancel` cancels the stream if the consumer leaves early, and `onStarved` learns whether the
   * consumer is waiting for bytes.
   */
  constructor(options: { grant: (bytes: number) => void; cancel: () => void; onStarved?: (is: boolean) => void }) {
    this.#grant = options.grant;
    this.#cancel = options.cancel;
    this.#onStarved = options.onStarved ?? (() => {});
  }

  /** Throws `protocol` if the data exceeds the window. */
  push(data: Buffer): void {
    if (data.length > this.#allowance) throw protocolError("more DATA than the window allows");
    if (data.length === 0) return;
    this.#allowance -= data.length;
    if (this.#waiting !== null) {
      const { resolve } = this.#waiting;
      this.#waiting = null;
      this.#onStarved(false);
      this.#consume(data.length);
      resolve({ done: false, value: data });
    } else if (this.#chunks.length - this.#head < CHUNKS_MAX) this.#chunks.push(data);
    else this.#gather(data);
  }

  end(): void {
    if (this.#state !== "open") return;
    this.#state = "ended";
    this.#waiting?.resolve({ done: true, value: undefined });
    this.#waiting = null;
  }

  fail(error: CaissonError): void {
    if (this.#state !== "open") return;
    this.#state = "failed";
    this.#failure = error;
    this.#waiting?.reject(error);
    this.#waiting = null;
  }

  /** Stops the transfer and delivers nothing more. */
  cancel(): void {
    const wasOpen = this.#state === "open";
    if (this.#state !== "failed") this.#state = "cancelled";
    this.#chunks = [];
    this.#head = 0;
    if (wasOpen) this.#cancel();
  }

  [Symbol.asyncIterator](): AsyncIterator<Uint8Array, undefined> {
    if (this.#iterating) throw new CaissonError("invalid", "a byte stream can be read only once");
    this.#iterating = true;
    return {
      next: () => this.#next(),
      return: () => {
        this.cancel();
        return Promise.resolve({ done: true, value: undefined });
      },
    };
  }

  #next(): Promise<IteratorResult<Uint8Array, undefined>> {
    if (this.#head < this.#chunks.length) {
      const value = this.#chunks[this.#head++] as Buffer;
      if (this.#head === this.#chunks.length) {
        this.#chunks = [];
        this.#head = 0;
        this.#gathering = null;
      }
      this.#consume(value.length);
      return Promise.resolve({ done: false, value });
    }
    if (this.#failure !== null) return Promise.reject(this.#failure);
    if (this.#state !== "open") return Promise.resolve({ done: true, value: undefined });
    if (this.#waiting !== null) return Promise.reject(new CaissonError("invalid", "a byte stream has one reader at a time"));
    this.#onStarved(true);
    return new Promise((resolve, reject) => {
      this.#waiting = { resolve, reject };
    });
  }

  #consume(bytes: number): void {
    this.#consumed += bytes;
    if (this.#consumed < CREDIT_BATCH_BYTES || this.#state !== "open") return;
    this.#allowance += this.#consumed;
    this.#grant(this.#consumed);
    this.#consumed = 0;
  }

  /** Only ever grows the last chunk, which no consumer has seen yet. */
  #gather(data: Buffer): void {
    const grown = this.#gathering?.append(data);
    if (grown) {
      this.#chunks[this.#chunks.length - 1] = grown;
      return;
    }
    this.#gathering = new GrowingChunk();
    const firstBytes = this.#gathering.append(data);
    if (firstBytes === null) this.#gathering = null;
    this.#chunks.push(firstBytes ?? data);
  }
}
