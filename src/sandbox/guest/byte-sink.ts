import type { CaissonError } from "../../contract/error/error.ts";
import { STREAM_WINDOW } from "./byte-source.ts";
import { encodeFrame, FRAME_PAYLOAD_MAX } from "./frame.ts";
import type { Link } from "./link.ts";
import { encodeDataHead } from "./raw.ts";

const CREDIT_MAX = 2 ** 40;

/** Sends `DATA` on one stream, within the credit that the guest granted. The bytes are not copied. */
export class ByteSink {
  readonly #link: Link;
  #credit: number;
  #failure: CaissonError | null = null;
  #room: PromiseWithResolvers<void> | null = null;
  /** Set when the request opens its stream. */
  stream = 0;

  constructor(link: Link, window = STREAM_WINDOW) {
    this.#link = link;
    this.#credit = window;
  }

  addCredit(bytes: number): void {
    this.#credit = Math.min(this.#credit + bytes, CREDIT_MAX);
    this.#wake();
  }

  /** Fails the sender with `error` and sends nothing more. */
  fail(error: CaissonError): void {
    this.#failure ??= error;
    this.#wake();
  }

  /**
   * Immediately sends what the credit allows. Returns undefined if that was everything, or a promise that resolves when
   * the rest has been sent.
   */
  send(data: Uint8Array): Promise<void> | undefined {
    if (this.#failure !== null) return Promise.reject(this.#failure);
    const at = this.#sendSome(data, 0);
    return at === data.length ? undefined : this.#sendRest(data, at);
  }

  end(): void {
    if (this.#failure === null) this.#link.send(encodeFrame("END", this.stream));
  }

  async #sendRest(data: Uint8Array, from: number): Promise<void> {
    let at = from;
    while (at < data.length) {
      if (this.#credit === 0) {
        this.#room ??= Promise.withResolvers<void>();
        await this.#room.promise;
      } else await this.#link.drained();
      if (this.#failure !== null) throw this.#failure;
      at = this.#sendSome(data, at);
    }
  }

  #sendSome(data: Uint8Array, from: number): number {
    let at = from;
    while (at < data.length && this.#credit > 0 && this.#link.drained() === undefined) {
      const size = Math.min(data.length - at, this.#credit, FRAME_PAYLOAD_MAX);
      this.#link.sendWithBody(encodeDataHead(this.stream, size), size === data.length ? data : data.subarray(at, at + size));
      this.#credit -= size;
      at += size;
    }
    return at;
  }

  #wake(): void {
    this.#room?.resolve();
    this.#room = null;
  }
}
