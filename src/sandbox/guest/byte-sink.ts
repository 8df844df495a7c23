import type { CaissonError } from "../../contract/error.ts";
import { STREAM_WINDOW } from "./byte-source.ts";
import { encodeFrame, FRAME_PAYLOAD_MAX } from "./frame.ts";
import type { Link } from "./link.ts";
import { encodeDataHead } from "./raw.ts";

const CREDIT_MAX = 2 ** 40;

/** Sends `DATA` on one stream, never more than the guest gave credit for. The bytes are not copied. */
export class ByteSink {
  readonly #link: Link;
  #credit: number;
  #failure: CaissonError | null = null;
  #room: PromiseWithResolvers<void> | null = null;
  /** Set once the request opened its stream. */
  stream = 0;

  constructor(link: Link, window = STREAM_WINDOW) {
    this.#link = link;
    this.#credit = window;
  }

  addCredit(bytes: number): void {
    this.#credit = Math.min(this.#credit + bytes, CREDIT_MAX);
    this.#wake();
  }

  /** Whoever sends is told; nothing more is sent. */
  fail(error: CaissonError): void {
    this.#failure ??= error;
    this.#wake();
  }

  /** Sends what may be sent at once; the promise, if any, resolves when the rest was sent. */
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
