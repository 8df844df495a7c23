import { CaissonError } from "../../contract/error/error.ts";
import { protocolError } from "./frame.ts";
import type { Link } from "./link.ts";
import { encodeStdinEnd, encodeStdinHead } from "./raw.ts";

const STDIN_WINDOW = 262_144;
const STDIN_FRAME_BYTES = 65_536;

/** The writing end of a process's stdin: sends each byte once, in order, within the guest's window. */
export class StdinPipe {
  readonly #link: Link;
  readonly #stream: number;
  #sent: number;
  #acknowledged: number;
  #closing = false;
  #failure: CaissonError | null = null;
  #room: PromiseWithResolvers<void> | null = null;
  #tail: Promise<void> | null = null;

  /**
   * For an existing process, `received` is how much stdin the guest already has, and `written` is how much of it the
   * process got.
   */
  constructor(options: { link: Link; stream: number; received: number; written: number }) {
    this.#link = options.link;
    this.#stream = options.stream;
    this.#sent = options.received;
    this.#acknowledged = options.written;
  }

  write(data: Uint8Array): Promise<void> {
    if (this.#closing) return Promise.reject(new CaissonError("invalid", "stdin was closed before this write"));
    return this.#inOrder(() => this.#send(data));
  }

  close(): Promise<void> {
    if (this.#closing) return this.#tail ?? Promise.resolve();
    this.#closing = true;
    return this.#inOrder(() => {
      if (this.#failure === null) this.#link.send(encodeStdinEnd(this.#stream, this.#sent));
      return undefined;
    });
  }

  acknowledge(offset: number): void {
    if (offset > this.#sent) throw protocolError(`stdin acknowledged up to ${offset}, but only ${this.#sent} was sent`);
    if (offset <= this.#acknowledged) return;
    this.#acknowledged = offset;
    this.#room?.resolve();
    this.#room = null;
  }

  /** Rejects waiting writes, because the reader has ended. */
  end(error: CaissonError): void {
    this.#failure ??= error;
    this.#room?.resolve();
    this.#room = null;
  }

  #inOrder(work: () => Promise<void> | undefined): Promise<void> {
    if (this.#tail === null) {
      const done = work();
      if (done === undefined) return Promise.resolve();
      return this.#follow(done);
    }
    return this.#follow(this.#tail.then(work, work));
  }

  #follow(done: Promise<void>): Promise<void> {
    this.#tail = done;
    const clear = () => {
      if (this.#tail === done) this.#tail = null;
    };
    done.then(clear, clear);
    return done;
  }

  /** Immediately sends what the window allows. Returns undefined if that was everything. */
  #send(data: Uint8Array): Promise<void> | undefined {
    if (this.#failure !== null) return Promise.reject(this.#failure);
    const at = this.#sendSome(data, 0);
    return at === data.length ? undefined : this.#sendRest(data, at);
  }

  async #sendRest(data: Uint8Array, from: number): Promise<void> {
    let at = from;
    while (at < data.length) {
      this.#room ??= Promise.withResolvers<void>();
      await this.#room.promise;
      if (this.#failure !== null) throw this.#failure;
      at = this.#sendSome(data, at);
    }
  }

  /** Copies the data into the frame, so the caller may reuse its buffer. */
  #sendSome(data: Uint8Array, from: number): number {
    let at = from;
    while (at < data.length) {
      const size = Math.min(data.length - at, STDIN_FRAME_BYTES, STDIN_WINDOW - (this.#sent - this.#acknowledged));
      if (size <= 0) break;
      const head = encodeStdinHead(this.#stream, this.#sent, size);
      const frame = Buffer.allocUnsafe(head.length + size);
      frame.set(head);
      frame.set(data.subarray(at, at + size), head.length);
      this.#link.send(frame);
      this.#sent += size;
      at += size;
    }
    return at;
  }
}
